"""Parsing of pages into blocks, and comparison of outputs."""

import pytest

from tests.docs.blocks import blocks_of, same


def test_blocks_of_gives_words_titles_and_lines():
    page = '# A page\n\n```python\nprint(1)\n```\n\n```text title="output"\n1\n```\n'
    code, output = blocks_of(page)
    assert (code.word, code.title, code.text, code.line) == ("python", "", "print(1)\n", 4)
    assert (output.word, output.title, output.line) == ("text", "output", 8)


def test_blocks_of_refuses_unknown_fences():
    for fence in ("```python run=no", "``` python", "  ```python", "```bash"):
        with pytest.raises(AssertionError):
            blocks_of(f"{fence}\nprint(1)\n```\n")


def test_commands_strip_prompts_and_comments_and_join_lines():
    block, *_ = blocks_of(
        "```sh\n$ logcde cite  # BibTeX\ntail -f a | logcde stream \\\nmodel\npython -m experiments uea\n```\n"
    )
    assert block.commands == ["logcde cite", "tail -f a | logcde stream  model"]
    assert block.modules == ["python -m experiments uea"]


def test_same_compares_exactly():
    assert same("1.25 a\n", "1.25 a\n", about=False)
    assert not same("1.26 a\n", "1.25 a\n", about=False)
    assert not same("1.25 a\nmore\n", "1.25 a\n", about=False)
    assert not same("", "1.25 a\n", about=False)


def test_same_about_allows_a_tolerance_on_numbers():
    assert same("loss 0.93, step 7\n", "loss 0.94, step 7\n", about=True)
    assert not same("loss 0.61, step 7\n", "loss 0.94, step 7\n", about=True)
    assert not same("loss 0.94, step 8\n", "loss 0.94, step 7\n", about=True)


def test_same_takes_dots_for_the_rest_of_a_line_or_for_lines():
    assert same("a\nb\nc d e\n", "...\nc ... e\n", about=False)
    assert not same("a\nb\nc d f\n", "...\nc ... e\n", about=False)
