"""The blocks of code of a page, and what the words after the opening fence ask for.

```python                    run, in one namespace for all blocks of the page
```python title="NAME.py"    a script: run in a process of its own
```sh                        each `logcde` command is run, in this process
```sh title="takes long"     each is only parsed: its options exist
```text title="output"       what the block above prints
```text title="output, about" the same, but numbers with a point may differ a little
```text, ```json, ```csv     no code; with title="NAME", a file that the page's commands read

Blocks without a word, in pages that are older than these rules, have commands that are parsed.
"""

import dataclasses
import re

FENCE = re.compile(r"^```(?P<word>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = {"python", "sh", "text", "json", "csv", ""}
NUMBER = re.compile(r"-?\d+\.\d+")


@dataclasses.dataclass(frozen=True)
class ResidualBlock:
    """One block: the word and the title of its fence, its text, and the line of the page where the text begins."""

    word: str
    title: str
    text: str
    line: int

    @property
    def lines(self):
        """Lines of a shell, without prompts and comments; those that go on in the next line are joined."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.removeprefix("$ ").split(" #")[0].rstrip() for line in lines]

    @property
    def commands(self):
        """Those that call `logcde`."""
        return [line for line in self.lines if line.startswith("logcde ") or "| logcde " in line]


def blocks_of(text):
    """All blocks of a page, in order. A fence that is not understood is refused, so that no code escapes the tests."""
    found = [
        ResidualBlock(one["word"], one["title"] or "", one["text"], text.count("\n", 0, one.start()) + 2)
        for one in FENCE.finditer(text)
    ]
    fences = len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert fences == 2 * len(found), f"{fences} fences, of which {2 * len(found)} are understood"
    for block in found:
        assert block.word in WORDS, f"line {block.line}: {block.word!r} is no kind of block"
    return found


def same(printed, shown, about):
    """Whether a block printed what is shown. Of lines that end in dots, and of dots by themselves, the rest is free."""
    pattern = "".join(_pattern(line, about) for line in shown.strip("\n").splitlines(keepends=True))
    found = re.fullmatch(pattern + r"\s*", printed)
    if found is None:
        return False
    numbers = [(float(a), float(b)) for a, b in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=False)]
    return not about or all(abs(a - b) <= 0.15 * max(1.0, abs(a)) for a, b in numbers)


def _pattern(line, about):
    if line.strip() == "...":
        return r"(?:.*\n)*"
    parts = map(_roughly if about else re.escape, line.rstrip().split("..."))
    return r"[^\n]*".join(parts) + " *" + ("\n" if line.endswith("\n") else "")


def _roughly(text):
    """Numbers with a point are any such numbers here, and are compared afterwards; spaces may be more or fewer."""
    parts = NUMBER.split(text)
    return r"-?\d+\.\d+".join(r" +".join(map(re.escape, re.split(r" +", part))) for part in parts)
