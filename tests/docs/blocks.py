"""Blocks of code on a page, and the meaning of the words after the opening fence.

```python                     run, in one namespace for all blocks of the page
```python title="NAME.py"     a script: run in a process of its own
```sh                         run each `logcde` command, in this process
```sh title="takes long"      only parse the commands: their options exist
```text title="output"        what the block above prints
```text title="output, about" the same, with a tolerance on decimal numbers
```text, ```json, ```csv      no code; with title="NAME", a file that commands of the page read

Commands in blocks without a word are parsed. `python -m experiments` and `python -m benchmarks` are always parsed and
never run.
"""

import dataclasses
import re

FENCE = re.compile(r"^```(?P<word>\w*)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = {"python", "sh", "text", "json", "csv", ""}
NUMBER = re.compile(r"-?\d+\.\d+")


@dataclasses.dataclass(frozen=True)
class CodeBlock:
    """One block: word and title of its fence, its text, and the line of the page where the text starts."""

    word: str
    title: str
    text: str
    line: int

    @property
    def lines(self):
        """Lines of a shell without prompts and comments, continuation lines joined."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.removeprefix("$ ").split(" #")[0].rstrip() for line in lines]

    @property
    def commands(self):
        """Lines that call `logcde`."""
        return [line for line in self.lines if line.startswith("logcde ") or "| logcde " in line]

    @property
    def modules(self):
        """Lines that call the experiments or the benchmarks."""
        return [line for line in self.lines if line.startswith(("python -m experiments", "python -m benchmarks"))]


def blocks_of(text):
    """All blocks of a page, in order. An unknown fence is refused, so that no code escapes the tests."""
    found = [
        CodeBlock(one["word"], one["title"] or "", one["text"], text.count("\n", 0, one.start()) + 2)
        for one in FENCE.finditer(text)
    ]
    fences = len(re.findall(r"^\s*```", text, re.MULTILINE))
    assert fences == 2 * len(found), f"{fences} fences, of which {2 * len(found)} are known"
    for block in found:
        assert block.word in WORDS, f"line {block.line}: {block.word!r} is not a known word"
    return found


def same(printed, shown, about):
    """Whether a block printed what is shown. Dots match the rest of a line, a line of dots any number of lines."""
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
    """Match any decimal numbers, which are compared afterwards, and any number of spaces."""
    parts = NUMBER.split(text)
    return r"-?\d+\.\d+".join(r" +".join(map(re.escape, re.split(r" +", part))) for part in parts)
