"""The two text formats of the UEA archive: `.ts`, and `.arff` with all channels in one quoted string."""

from collections.abc import Iterator
from pathlib import Path

from logcde.datasets.cases import Cases, Expected, Line, Parts, fault, gather, head_and_data


def read_ts(path: Path) -> Cases:
    """A `.ts` file: lines `channel:channel:...:label`, after a head of lines such as `@classLabel true a b`."""
    head, data = head_and_data(path, "#")
    said: dict[str, tuple[int, list[str]]] = {}
    for number, text in head:
        key, *words = text.split()
        said[key.lower()] = number, words

    def says(key: str, default: str) -> tuple[int, str]:
        number, words = said.get(key, (0, []))
        return number, words[0].lower() if words else default

    number, answer = says("@timestamps", "false")
    if answer != "false":
        raise fault(path, number, "the series have stamps of their own, which are not read. Give evenly spaced series.")
    number, answer = says("@classlabel", "true")
    if answer != "true":
        raise fault(path, number, "the series have no class labels. Only data sets for classification are read.")
    number, dimensions = says("@dimensions", "1" if says("@univariate", "false")[1] == "true" else "")
    channels = _count(path, number, dimensions)
    number, answer = says("@serieslength", "")
    length = _count(path, number, answer) if says("@equallength", "false")[1] == "true" else None
    return gather(path, map(_taken_apart, data), Expected(channels, length, said.get("@classlabel", (0, []))[1][1:]))


def _taken_apart(line: Line) -> Parts:
    *channels, label = line.text.split(":")
    return Parts(line.number, channels, label.strip())


def _count(path: Path, number: int, text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise fault(path, number, f"{text!r} is not a number of channels or steps. Write a whole number above 0.")
    return int(text)


def read_arff(path: Path) -> Cases:
    r"""An `.arff` file: lines `'channel\nchannel\n...',label`, or `number,number,...,label` if there is one channel."""
    head, data = head_and_data(path, "%")
    attributes = [line for line in head if line.text.lower().startswith("@attribute")]
    if not attributes:
        return gather(path, (), Expected(None, None, ()))
    number, text = attributes[-1]
    if not text.endswith("}"):
        raise fault(
            path, number, "the last attribute is not a list of classes such as {a, b}. Only classification is read."
        )
    classes = [_bare(name) for name in text[text.index("{") + 1 : -1].split(",")]
    return gather(path, _unquoted(path, data), Expected(None, None, classes))


def _unquoted(path: Path, data: Iterator[Line]) -> Iterator[Parts]:
    for number, text in data:
        quote = text[0]
        if quote not in "'\"":
            values, _, label = text.rpartition(",")
            yield Parts(number, [values], _bare(label))
            continue
        inner, closed, label = text[1:].partition(quote)
        if not closed:
            raise fault(path, number, f"the quotation mark {quote} is not closed. The file may have been cut short.")
        yield Parts(number, inner.split("\\n"), _bare(label.lstrip().removeprefix(",")))


def _bare(label: str) -> str:
    """Without space and quotation marks around it."""
    return label.strip().strip("'\"")
