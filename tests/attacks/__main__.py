"""`python -m tests.attacks --full`: all attacks with large counts; figures go to `results.json`, which the docs quote.

It prints them as rows of the table in `docs/promises.md`. Each part is written when it is done. After Ctrl-C or a kill
the same command goes on with the next part.
"""

import argparse
import dataclasses
import datetime
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_ENABLE_X64", "1")  # also for processes that are started

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from logcde._files import held, write_whole
from logcde._machine import machine, versions
from logcde.errors import InUseError
from tests.attacks import memory, mutations
from tests.attacks.commands import FLAGS, fuzz
from tests.attacks.disks import full_disks
from tests.attacks.kills import VICTIMS, kills
from tests.attacks.writers import two_writers

RESULTS = Path(__file__).parent / "results.json"
KILLS = {"embed": 20, "train ridge": 20, "train ridge again": 20, "train network": 20, "stream": 8}
"""Kills of each command in the long run; each takes two processes."""
WORDS = {
    "refused": "refused",
    "same": "read as before",
    "unprinted": "done without all of their output",
    "done": "done",
    "at_times": "killed at a random time",
    "at_changes": "killed before a random change",
    "both": "done both",
    "one": "refused one",
}
"""What is counted, in the words of the documentation."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One attack: how often it is tried, in short and in full, and the function that tries."""

    short: int
    full: int
    run: Callable[[Path, int, int], dict[str, Any]]


def parts() -> dict[str, Part]:
    """All attacks by name."""
    found = {f"mutations of {name.replace('_', ' ')}": Part(150, 1500, _mutations(name)) for name in mutations.KINDS}
    for name in FLAGS:
        found[f"command lines of {name}"] = Part(30, 500, _commands(name))
    found["full disks"] = Part(14, 350, lambda *given: vars(full_disks(*given)))
    for name in VICTIMS:
        found[f"kills of {name}"] = Part(2, KILLS[name], _kills(name))
    found["two writers"] = Part(1, 2, lambda *given: vars(two_writers(*given)))
    found["memory of a predictor"] = Part(100_000, 10_000_000, lambda place, count, seed: memory.events(count))
    found["memory of embed, in gigabytes"] = Part(1, 10, lambda place, count, seed: memory.large_table(count, place))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are not done, and write figures after each."""
    parser = argparse.ArgumentParser("python -m tests.attacks", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the large counts, for about an hour")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="*", default=[], help="only parts whose names begin like one of these")
    parser.add_argument("--output", type=Path, default=None, help=f"with --full, by default {RESULTS.name} here")
    parser.add_argument("--fresh", action="store_true", help="repeat parts that are done")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as nowhere:
        output = given.output or (RESULTS if given.full else Path(nowhere, "results.json"))
        try:
            with held(output):
                return _run(given, output)
        except InUseError as error:
            sys.exit(str(error))
        except KeyboardInterrupt:
            sys.stderr.write(f"Stopped. Finished parts are in {output}; the same command goes on.\n")
            return 130


def _run(given: argparse.Namespace, output: Path) -> int:
    results = json.loads(output.read_text()) if output.exists() else {}
    chosen = {
        name: part
        for name, part in parts().items()
        if not given.parts or any(name.startswith(one) for one in given.parts)
    }
    failed: list[str] = []
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("attacks", total=len(chosen))
        for name, part in chosen.items():
            count = part.full if given.full else part.short
            done = results.get(name)
            if done is None or given.fresh or (done["count"], done["seed"]) != (count, given.seed):
                progress.update(task, description=name)
                try:
                    results[name] = _measured(part, count, given.seed)
                except Exception:  # a finding, after which the other parts are still of interest
                    failed.append(name)
                    progress.console.print(f"{name}: FAILED\n{traceback.format_exc()}", markup=False)
                else:
                    results = {one: results[one] for one in parts() if one in results}
                    write_whole(output, json.dumps(results, indent=1) + "\n")
                    progress.console.print(f"{name}: {results[name]['found']}", markup=False)
            progress.advance(task)
    sys.stdout.write("\n".join(figures(results)) + "\n")
    return 1 if failed else 0


def figures(results: dict[str, Any]) -> list[str]:
    """The results as rows of the table in the documentation."""
    rows = []
    for name, one in results.items():
        found = one["found"]
        if "resident_mb" in found:
            first, last = found["resident_mb"][0], found["resident_mb"][-1]
            if "bytes" in found:
                tried = f"{found['bytes'] / 1e9:.1f} GB, {found['rows']:,} rows of {found['channels']} channels"
                said = f"at most {found['peak_mb']:.0f} MB"
            else:
                tried = f"{found['events']:,} events"
                said = f"{first:.0f} MB after a tenth of them, {last:.0f} MB at the end"
        elif "codes" in found:
            codes = {"0": "done", "1": "refused", "2": "not understood"}
            tried = f"{sum(found['codes'].values()):,}"
            said = ", ".join(
                f"{found['codes'][code]:,} {word}" for code, word in codes.items() if code in found["codes"]
            )
        else:
            tried = f"{sum(found.values()):,}"
            said = ", ".join(f"{number:,} {WORDS[key]}" for key, number in found.items())
        rows.append(f"| {name} | {tried} | {said} | {one['seed']} | {one['date']} |")
    return rows


def _measured(part: Part, count: int, seed: int) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        found = part.run(Path(place), count, seed)
    return {
        "count": count,
        "seed": seed,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seconds": round(time.monotonic() - began, 1),
        "machine": machine(),
        "versions": versions("pyarrow", "hypothesis"),
        "found": found,
    }


def _mutations(name: str) -> Callable[[Path, int, int], dict[str, Any]]:
    return lambda *given: vars(mutations.KINDS[name](*given))


def _commands(name: str) -> Callable[[Path, int, int], dict[str, Any]]:
    def run(place: Path, count: int, seed: int) -> dict[str, Any]:
        seen = fuzz(place, count, seed, (name,), single=None if count > 100 else count // 3)
        return {"codes": {str(code): number for (_, code), number in seen.codes.items()}, "written": seen.written}

    return run


def _kills(name: str) -> Callable[[Path, int, int], dict[str, Any]]:
    return lambda place, count, seed: vars(kills(place, count, seed, name))


if __name__ == "__main__":
    sys.exit(main())
