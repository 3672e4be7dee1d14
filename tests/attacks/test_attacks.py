"""A few cases of every attack; `python -m tests.attacks --full` calls the same functions with large counts."""

import dataclasses
import json
import typing
from pathlib import Path

import pytest
import tyro

from logcde.cli.main import COMMANDS
from tests.attacks.__main__ import RESULTS, figures, main, parts
from tests.attacks.commands import FLAGS, Models, fuzz
from tests.attacks.disks import full_disks
from tests.attacks.kills import VICTIMS, kills
from tests.attacks.mutations import KINDS, exchanged_checkpoints, exchanged_models
from tests.attacks.writers import two_writers

COUNT = 150
PAGE = Path(__file__).parents[2] / "docs" / "promises.md"


@pytest.mark.parametrize("kind", KINDS)
def test_mutations_are_refused_or_change_nothing(kind, tmp_path):
    outcome = KINDS[kind](tmp_path, COUNT, seed=0)
    assert outcome.refused + outcome.same == COUNT
    assert outcome.refused > COUNT // 2


def test_exchanged_files_are_refused(tmp_path):
    assert exchanged_models(tmp_path) == 2
    assert exchanged_checkpoints(tmp_path)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return Models(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("command", FLAGS)
def test_commands_end_with_a_known_code_and_a_message(command, models, tmp_path):
    count = 10 if command in ("nonsense", "report", "export", "serve") else 25
    seen = fuzz(tmp_path, count, 0, (command,), models, single=6)
    assert sum(seen.codes.values()) >= count
    assert seen.codes[command, 0] + seen.codes[command, 1] + seen.codes[command, 2] == sum(seen.codes.values())


@pytest.mark.parametrize(
    "command", sorted(set(COMMANDS) - {"cite", "warm"})
)  # which read no data of users, or not from files
def test_no_option_is_left_out(command):
    assert set(options_of(COMMANDS[command])) - {"--output"} <= set(FLAGS[command])


def options_of(kind: type) -> list[str]:
    """The options of a command, from the fields of its dataclass and of those within it."""
    found = []
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        inner, *marks = typing.get_args(hint) if typing.get_origin(hint) is typing.Annotated else (hint,)
        if dataclasses.is_dataclass(inner):
            found += options_of(inner)
        elif tyro.conf.Positional not in marks:
            named = [one.name for one in marks if getattr(one, "name", None)]
            found.append("--" + (named or [name])[0].replace("_", "-"))
    return found


def test_full_disks_leave_the_old_or_the_new(tmp_path):
    seen = full_disks(tmp_path, 21, 0)
    assert seen.refused + seen.unprinted + seen.done == 21
    assert seen.refused >= 7


@pytest.mark.parametrize("victim", ["embed", "stream", "train ridge"])
def test_killed_commands_are_run_again(victim, tmp_path):
    seen = kills(tmp_path, 2, 3, victim)
    assert seen.at_times + seen.at_changes + seen.done == 2
    assert seen.at_changes


def test_two_writers(tmp_path):
    seen = two_writers(tmp_path, 1, 0)
    assert seen.both + seen.one == 3


def test_command_writes_figures_and_skips_what_is_done(tmp_path, capsys):
    output = tmp_path / "results.json"
    arguments = ["--parts", "mutations of finished", "--output", str(output)]
    for _ in range(2):
        assert main(arguments) == 0
    results = json.loads(output.read_text())
    assert list(results) == ["mutations of finished scores"]
    assert results["mutations of finished scores"]["found"].keys() == {"refused", "same"}
    printed = capsys.readouterr()
    assert printed.err.count("'refused'") == 1
    assert printed.out == 2 * "".join(f"{row}\n" for row in figures(results))
    assert {one for one in parts() if one.startswith("kills of ")} == {f"kills of {one}" for one in VICTIMS}


def test_page_quotes_the_long_run():
    results, page = json.loads(RESULTS.read_text()), PAGE.read_text()
    assert list(results) == list(parts())
    assert [row for row in figures(results) if row not in page] == []


def test_figures_are_told_in_words():
    given = {"seed": 0, "date": "2026-01-31"}
    results = {
        "two writers": given | {"found": {"both": 2, "one": 1}},
        "command lines of embed": given | {"found": {"codes": {"1": 1200, "0": 3}, "written": 3}},
        "memory of a predictor": given | {"found": {"events": 100_000, "resident_mb": [500.2, 500.4]}},
    }
    assert figures(results) == [
        "| two writers | 3 | 2 done both, 1 refused one | 0 | 2026-01-31 |",
        "| command lines of embed | 1,203 | 3 done, 1,200 refused | 0 | 2026-01-31 |",
        "| memory of a predictor | 100,000 events | 500 MB after a tenth of them, 500 MB at the end | 0 | 2026-01-31 |",
    ]
