"""Parser of reports: checks that they are well-formed, self-contained, and have unique ids."""

from html.parser import HTMLParser

VOID = {"meta"}


class Page(HTMLParser):
    """Tags, attributes, text, and the cells of table rows."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts, self.rows = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"{self.open} are not closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open += [] if tag in VOID else [tag]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)
        if self.open and set(self.open) & {"td", "th"}:
            self.rows[-1][-1] += data

    @property
    def text(self):
        return "".join(self.texts)


def opened(text):
    """Parse a report and check that it has no scripts and no external resources."""
    assert text.startswith("<!DOCTYPE html>")
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for name, value in page.attributes:
        assert not name.startswith("on"), name
        if name in ("src", "href", "xlink:href", "srcset", "action"):
            assert value.startswith(("#", "data:image/png;base64,")), value
            assert not value.startswith("#") or value[1:] in ids, value
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")
    return page
