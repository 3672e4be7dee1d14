"""Copy repository files that pages link to into the site, under `repository/`.

Pages link to them by relative paths, such as `../experiments/results/brownian/errors.png`, which also work in the
repository. A link to a missing file stays unchanged, so that MkDocs reports it.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Files of the repository in the navigation."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|/|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add linked files, and files linked from those."""
    waiting = {ROOT / name for name in PAGES}
    for file in files.documentation_pages():
        waiting |= _outside(Path(str(file.abs_src_path)), file.content_string)
    done: set[Path] = set()
    while waiting:
        path = waiting.pop()
        done.add(path)
        files.append(File.generated(config, _place(path), abs_src_path=str(path)))
        if path.suffix == ".md":
            waiting |= _outside(path, path.read_text()) - done
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links out of the documentation to the files that were added."""
    source = Path(str(page.file.abs_src_path))
    here = Path(page.file.src_uri).parent

    def changed(found: re.Match[str]) -> str:
        target = (source.parent / found[1]).resolve()
        if not target.is_file():
            return found[1]
        inside = target.is_relative_to(config.docs_dir)
        place = target.relative_to(config.docs_dir).as_posix() if inside else _place(target)
        return Path(*[".."] * len(here.parts), place).as_posix()

    return LINK.sub(changed, markdown)


def _outside(page: Path, text: str) -> set[Path]:
    """Files of the repository that a page links to, outside `docs/`."""
    targets = ((page.parent / link).resolve() for link in LINK.findall(text))
    return {
        target
        for target in targets
        if target.is_file() and target.is_relative_to(ROOT) and not target.is_relative_to(ROOT / "docs")
    }


def _place(path: Path) -> str:
    return f"repository/{path.relative_to(ROOT).as_posix()}"
