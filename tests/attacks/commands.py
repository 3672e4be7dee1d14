"""Command lines over made-up files and flags: every command ends with a known code, a message, and nothing left over.

Commands run in this process, which is fast; warnings count as errors.
"""

import collections
import contextlib
import dataclasses
import datetime
import gzip
import io
import json
import re
import shutil
import sys
import tempfile
import unittest.mock
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pyarrow
import uvicorn
from hypothesis import strategies as st
from pyarrow import parquet

from logcde.cli import main
from logcde.cli.output import UNWRITTEN
from logcde.errors import LogcdeWarning
from tests.attacks.mutations import mutated
from tests.cli.streaming import GOOD
from tests.cli.training_tables import vitals

CODES = (0, 1, 2)
"""Codes with which a command may end here: done, refused, not understood."""
NUMBERS = ("0", "1", "-1", "0.5", "3.75", "100")
BAD_NUMBERS = (
    "1e308",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "",
    "1e999",
    "9223372036854775808",
    "1_0",
    "x",
    "true",
)
BAD_STAMPS = (
    *("-1", "1e308", "1e-320", "nan", "inf", "", "1700000000", "1.7e18", "9223372036854775808", "24:00", "0x10", "x"),
    *("2024-01-01", "2024-01-01T10:00:00", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00+05:30", "0001-01-01"),
    *("9999-12-31T23:59:59.999999", "2024-01-01T10:00:00.123456789", "1600-01-01T00:00:00.1234567", "2024-02-30"),
)
IDS = ("p1", "p2", "p3")
BAD_IDS = ("", "1", "007", "-1", "é", "a b", "nan", "9223372036854775808", "None", "\U0001f600", '"', "p1 ")
CHANNELS = ("pulse", "temp")
BAD_CHANNELS = ("", "#pulse", "~pulse", "time", "series", "value", "start", "é", "a\nb", "1", "x" * 300)
COLUMNS = ("series", "time", "channel", "value")
BAD_COLUMNS = ("", " ", "start", "stop", "pulse", "temp", "é", "a,b", '"', "time", "#pulse", "series.1")
LENGTHS = (
    "1",
    "0.5",
    "90min",
    "1h",
    "0",
    "-1",
    "nan",
    "inf",
    "1e-300",
    "1e300",
    "1x",
    "",
    "1e999",
    "0h",
    "99999999999d",
)
MOMENTS = ("5", "100", *LENGTHS, "2024-03-01", "2024-03-01T12:30:00Z", "0001-01-01", "first", "earliest")
WHOLES = ("1", "2", "3", "4", "5", "0", "-1", "1000000000000", "1e3", "x", "99999999999999999999999")
RATES = ("0.5", "0", "1", "-1", "nan", "inf", "1e-320", "1e308", "x")
PLOTS = ("out.png", "out.svg", "out", "out.xyz", ".", "new/out.pdf")
TABLE_FLAGS = {
    "--series": (*COLUMNS, *BAD_COLUMNS),
    "--time": (*COLUMNS, *BAD_COLUMNS),
    "--channel": (*COLUMNS, *BAD_COLUMNS),
    "--value": (*COLUMNS, *BAD_COLUMNS),
    "--channels": (*CHANNELS, *BAD_CHANNELS),
    "--single": (),
    "--horizon": MOMENTS,
    "--sort": (),
    "--duplicates": ("refuse", "last", "mean", "first"),
    "--drop-empty": (),
}
FREE_TABLE_FLAGS = TABLE_FLAGS | {"--origin": MOMENTS, "--unit": LENGTHS, "--epoch": ("s", "ms", "us", "ns", "h")}
# Addresses at which nothing listens: no cluster is started for a guess.
FOLDER_FLAGS = {"--unsplit": (), "--ray": ("127.0.0.1:9", "nonsense", "")}
STREAMS = ("nats://127.0.0.1:9/vitals", "nats://127.0.0.1:9/a.b", "http://127.0.0.1:9/vitals", "nats://[/x", "")
DATABASES = ("postgresql://127.0.0.1:9/ward", "postgresql://[/ward", "postgres://127.0.0.1:x/ward")
TARGET_FLAGS = {"--target": (*CHANNELS, "state", *COLUMNS), "--targets": ("table", "other"), "--only-matched": ()}
FLAGS: dict[str, dict[str, tuple[str, ...]]] = {
    "describe": FREE_TABLE_FLAGS | {"--json": (), "--plot": PLOTS},
    "embed": FREE_TABLE_FLAGS
    | FOLDER_FLAGS
    | {
        "--every": LENGTHS,
        "--intervals": WHOLES,
        "--events": WHOLES,
        "--calendar": ("hour", "month", "year", "century"),
        "--at": ("table", "other", "nothing"),
        "--features": ("windows", "logsigs"),
        "--windows": WHOLES,
        "--units": WHOLES,
        "--parts": WHOLES,
        "--depth": WHOLES,
        "--no-counts": (),
        "--no-time": (),
        "--roughness": (),
        "--precision": ("float32", "float64", "float16"),
        "--rows": WHOLES,
    },
    "train": FREE_TABLE_FLAGS
    | TARGET_FLAGS
    | {
        "--task": ("classify", "regress", "forecast"),
        "--holdout": ("0", "0.5", "1", "-1", "nan"),
        "--seed": WHOLES,
        "--overwrite": (),
        "--fresh": (),
        "--config": ("table", "other", "nothing"),
        "--learner": ("ridge", "trees", "nonsense"),  # others take long on a good table
        "--paper": (),
        "--class-weight": ("balanced", "nonsense"),
        **dict.fromkeys(("--batch", "--block", "--depth", "--hidden", "--patience", "--steps"), WHOLES),
        "--every": LENGTHS,
        "--rate": RATES,
        "--validation": RATES,
    },
    "evaluate": TABLE_FLAGS | TARGET_FLAGS | {"--held-out": (), "--json": ()},
    "predict": TABLE_FLAGS
    | FOLDER_FLAGS
    | {"--at": ("table", "other", "nothing"), "--every": LENGTHS, "--rows": WHOLES},
    "stream": {
        "--when": ("event", "interval", "request", "never"),
        "--state": ("state", "table", "nothing/state"),
        "--state-every": WHOLES,
        "--state-seconds": ("1", "0", "nan", "inf", "-1", "1e308"),
        "--longest-line": WHOLES,
        "--replay": (),
        "--json-errors": (),
        "--quiet": (),
    },
    "stress": TABLE_FLAGS
    | TARGET_FLAGS
    | {
        "--drop": ("0", "0.5", "0.99", "1", "-1", "nan"),
        "--by": ("points", "channels"),
        "--seeds": WHOLES,
        "--plot": PLOTS,
        "--json": (),
        "--fresh": (),
    },
    "serve": {
        "--store": ("state.db", "new/state.db", "table", "other", ".", "", *DATABASES),
        "--beside": ("NETWORK", "FORECASTER", "MODEL", "table", "nothing"),
        "--from": STREAMS,
        "--to": STREAMS,
        "--partitions": ("0", "0-3", "3-0", "-1", "0,0", "0-99999", "x", ""),
        "--http": ("127.0.0.1:0", "localhost:0", "[::1]:0", "127.0.0.1:99999", "192.0.2.1:0", "nonsense", ""),
        "--when": ("event", "request", "never"),
        "--alert": ("ill:0.8:0.6", "well:0.2:0.4", "0:1:1", "other:1:0", "ill:nan:0", "ill:1", ""),
        "--risk": ("ill", "well", "0", "other", ""),
        "--token-file": ("table", "nothing", "."),
        "--tls-certificate": ("table", "nothing"),
        "--tls-key": ("table", "nothing"),
        **dict.fromkeys(("--history", "--max-body", "--max-series"), WHOLES),
        **dict.fromkeys(("--archive-after", "--keep-ids", "--max-rate", "--rate", "--reorder", "--tick"), RATES),
    },
    "report": {},
    "export": {"--intervals": ("1", "3", *WHOLES), "--rows": ("1", "7", *WHOLES)},
    "nonsense": {"--version": (), "--help": (), "--depth": WHOLES},
}
"""Commands with their flags, and values of each."""
NETWORK_FLAGS = ("--batch", "--block", "--depth", "--every", "--hidden", "--paper", "--patience", "--rate", "--steps")
"""Options of `train` that need a network, as does --validation."""
MODELS = {
    "MODEL": ("--learner", "ridge", "--target", "state"),
    "FORECASTER": ("--task", "forecast"),
    "NETWORK": ("--learner", "slice", "--target", "state", "--hidden", "4", "--depth", "1", "--steps", "2"),
}
"""Words that stand for trained models, and the options of their training."""
SERVED = {"--store": "state.db", "--http": "127.0.0.1:0"}
"""What every service is given."""
ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".txt", ".jsonl", "")
OUTPUTS = ("out.csv", "out.parquet", "out.jsonl", "out", "out.txt", "table", "new/folder/out.csv", "", ".")
ARROW_TYPES = (
    *(pyarrow.int8(), pyarrow.int64(), pyarrow.uint64(), pyarrow.float16(), pyarrow.float32(), pyarrow.float64()),
    *(pyarrow.bool_(), pyarrow.string(), pyarrow.large_string(), pyarrow.binary(), pyarrow.date32(), pyarrow.null()),
    *(pyarrow.timestamp("s"), pyarrow.timestamp("us", "UTC"), pyarrow.timestamp("ns", "Europe/Paris")),
    *(pyarrow.duration("ms"), pyarrow.decimal128(20, 3), pyarrow.time64("us")),
    *(pyarrow.list_(pyarrow.float64()), pyarrow.struct({"a": pyarrow.int64()})),
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
)


MOSTLY = st.sampled_from((True,) * 15 + (False,))


@dataclasses.dataclass(frozen=True)
class Case:
    """A command line, the files in its folder, and its standard input. Words of `MODELS` are trained models."""

    words: tuple[str, ...]
    files: dict[str, bytes]
    lines: bytes


@dataclasses.dataclass
class Seen:
    """How many commands ended with which code, by command, and all tables that were written."""

    codes: collections.Counter[tuple[str, int]] = dataclasses.field(default_factory=collections.Counter)
    written: int = 0


def fuzz(
    place: Path,
    count: int,
    seed: int,
    commands: Sequence[str] = tuple(FLAGS),
    models: "Models | None" = None,
    single: int | None = None,
) -> Seen:
    """Run this many commands; the first that misbehaves is shrunk to a small one and raised.

    Args:
        place: A folder to work in.
        count: Number of random command lines.
        seed: Seed of the command lines.
        commands: Commands to run.
        models: Trained models; by default they are trained when they are needed.
        single: Before these, how many command lines with one option each, on good tables; by default all of them.
    """
    model, seen = Models(place) if models is None else models, Seen()
    each_value = [case for command in commands for case in single_values(command)]
    order = np.random.default_rng(seed).permutation(len(each_value))[: len(each_value) if single is None else single]
    for number in order.tolist():
        check(each_value[number], place / "case", model, seen)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
    )
    @hypothesis.given(cases(commands))
    def each(case: Case) -> None:
        check(case, place / "case", model, seen)

    each()
    return seen


class Models:
    """Models trained on a table with the usual names of columns, each when it is asked for."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def path(self, word: str) -> str:
        """The folder of the model that a word stands for; other words stay."""
        if word not in MODELS:
            return word
        folder = self._place / word.lower()
        if not folder.exists():
            self._place.mkdir(exist_ok=True)
            good_table("vitals.parquet", self._place, word == "FORECASTER")
            code, _, errors = call("train", self._place / "vitals.parquet", *MODELS[word], "-o", folder)
            assert code == 0, errors
        return str(folder)

    def unfinished(self) -> set[Path]:
        """Folders of work that was interrupted."""
        return set(self._place.glob("*unfinished*"))


def good_table(name: str, folder: Path, numbers: bool = False) -> bytes:
    """Write a table that all commands read; if `numbers`, without classes."""
    table = vitals().drop("extra", *(["state"] if numbers else [])).rename({"id": "series", "t": "time"})
    table.write_parquet(folder / name)
    return (folder / name).read_bytes()


def single_values(command: str) -> list[Case]:
    """Command lines that are right but for one option, with each of its values in turn."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {kind: good_table("table.parquet", Path(folder), kind) for kind in (False, True)}
    found = []
    for flag, values in FLAGS[command].items():
        words, ahead = [command], command == "predict" and flag in ("--at", "--every")
        numbers = ahead or command in ("describe", "embed")
        if command in ("evaluate", "export", "predict", "serve", "stream", "report", "stress"):
            words.append("FORECASTER" if ahead else "MODEL")
        if command not in ("serve", "stream", "export", "report", "nonsense"):
            words.append("table.parquet")
        if command == "train" and flag != "--config":
            network = flag in (*NETWORK_FLAGS, "--validation")
            words += ["--learner", "slice" if network else "ridge"] if flag != "--learner" else []
            words += ["--steps", "1"] if network and flag != "--steps" else []
            words += ["--target", "state"] if flag != "--target" else []
        if command == "embed" and flag in ("--windows", "--units", "--parts"):
            words += ["--features", "logsigs" if flag == "--parts" else "windows"]
        if command == "export":
            words[-1] = "NETWORK"
            words += ["--intervals", "2"] if flag != "--intervals" else []
        if command == "serve":
            words += [word for one in SERVED.items() if one[0] != flag for word in one]
        if command in ("embed", "export", "predict", "train"):
            words += ["-o", "model" if command in ("export", "train") else "out.csv"]
        for value in values or (None,):
            more = [flag, *([] if value is None else ["table.parquet" if value in ("table", "other") else value])]
            lines = json.dumps(GOOD).encode() + b"\n" if command == "stream" else b""
            found.append(Case((*words, *more), {"table.parquet": tables[numbers]}, lines))
    return found


def check(case: Case, folder: Path, models: Models, seen: Seen) -> None:
    """Run a command in a new folder, and check how it ends and what it leaves."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in case.files.items():
        (folder / name).write_bytes(content)
    before = set(folder.rglob("*"))
    (folder / "lines").write_bytes(case.lines)
    words = [models.path(word) for word in case.words]
    with contextlib.chdir(folder), unittest.mock.patch.object(uvicorn.Server, "serve", _served):
        code, out, errors = call(*words, stdin=folder / "lines")
    (folder / "lines").unlink()
    left = set(folder.rglob("*")) - before
    told = f"{words} ended with {code}: {errors}"
    assert code in CODES, told
    assert "Traceback" not in out + errors, told
    assert code == 0 or errors.strip(), f"{words} ended with {code} without a message."
    left |= models.unfinished()
    hidden = [path for path in left if path.name.startswith(".") or "unfinished" in path.name]
    assert not hidden, f"{told}; left {hidden}"
    files = [path for path in left if path.is_file()]
    assert code == 0 or words[0] in ("serve", "stream") or not files, f"{told}; left {files}"
    assert before <= set(folder.rglob("*")), f"{told}; removed input"
    outputs = [words[place + 1] for place, word in enumerate(words[:-1]) if word in ("-o", "--plot")]
    for path in before:
        replaced = (code == 0 and path.name in outputs) or (words[0] == "serve" and not case.files[path.name])
        assert replaced or path.read_bytes() == case.files[path.name], f"{told}; changed {path}"
    for path in files:
        check_written(path)
        seen.written += 1
    seen.codes[words[0], code] += 1


async def _served(server: uvicorn.Server, sockets: object) -> None:
    """A service that a signal ends as soon as it could be asked."""


def check_written(path: Path) -> None:
    """A table that was written can be read by others."""
    if path.suffix == ".parquet":
        parquet.read_table(path)
    elif path.suffix == ".jsonl":
        for line in path.read_text().splitlines():
            json.loads(line)


def call(*words: object, stdin: Path | None = None, stdout: Any = None) -> tuple[int, str, str]:
    """Run a command in this process. Returns its code, its output unless it goes elsewhere, and its messages."""
    source = Path("/dev/null") if stdin is None else stdin
    before = sys.stdin, sys.stdout, sys.stderr
    errors = io.StringIO()
    with source.open() as lines, tempfile.TemporaryFile("w+") as out, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", LogcdeWarning)  # these are said
        # Output is a file, since streams write to its descriptor.
        sys.stdin, sys.stdout, sys.stderr = lines, out if stdout is None else stdout, errors
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
        assert isinstance(code, int), code
        if code == 130:
            raise KeyboardInterrupt
        out.seek(0)
        return code, out.read(), errors.getvalue()


@st.composite
def cases(draw: Callable[[Any], Any], commands: Sequence[str]) -> Case:
    """Command lines with the files that they name."""
    command = draw(st.sampled_from(commands))
    state = command in ("train", "evaluate", "stress") and draw(MOSTLY)
    name, content = draw(table_files("table", state))
    other, others = draw(table_files("other", state))
    files = {name: content, other: others}
    names = {"table": name, "other": other}
    words: list[str] = [command]
    if command in ("evaluate", "export", "predict", "serve", "stream", "report", "stress"):
        model = draw(st.sampled_from(("MODEL",) * 4 + tuple(MODELS)))
        words.append(model if draw(MOSTLY) else draw(st.sampled_from((name, "nothing", "."))))
    if command not in ("serve", "stream", "export", "report", "nonsense"):
        words.append(name if draw(MOSTLY) else draw(st.sampled_from(("nothing.csv", ".", "", other))))
    if command == "train":
        words += ["--learner", "ridge" if draw(MOSTLY) else "nonsense"]
        words += ["--target", "state"] if draw(MOSTLY) else []
    flags = st.lists(st.sampled_from(sorted(FLAGS[command]) or ["--help"]), max_size=3, unique=True)
    for flag in draw(st.one_of(st.just([]), flags)):
        words.append(flag)
        values = FLAGS[command].get(flag, ())
        many = 3 if flag in ("--channels", "--parts", "--drop", "--seeds") else 1
        if values:
            words += [names.get(one, one) for one in draw(st.lists(st.sampled_from(values), min_size=1, max_size=many))]
    if command == "export":
        words += ["--intervals", "2"] if "--intervals" not in words else []
    if command == "serve":
        words += [word for one in SERVED.items() if one[0] not in words for word in one]
    if command in ("embed", "export", "predict", "report", "train") and draw(MOSTLY):
        ordinary = {"export": "model", "train": "model", "report": "report.html"}.get(command, "out.csv")
        output = ordinary if draw(MOSTLY) else draw(st.sampled_from(OUTPUTS))
        words += ["-o", names.get(output, output)]
    lines = draw(stream_lines()) if command == "stream" else b""
    return Case(tuple(words), files, lines)


@st.composite
def table_files(draw: Callable[[Any], Any], name: str, state: bool) -> tuple[str, bytes]:
    """The name of a file and its content: a table, a damaged one, or something else."""
    ending = draw(st.sampled_from(ENDINGS + (".csv", ".parquet") * 10))
    kind = draw(st.sampled_from(("table",) * 16 + ("damaged", "damaged", "bytes", "text")))
    if kind == "bytes":
        return name + ending, draw(st.binary(max_size=60))
    if kind == "text":
        return name + ending, draw(st.text(st.sampled_from('a1,;\t\n"\r. \0é'), max_size=60)).encode()
    if ending == ".parquet":
        content = draw(parquet_tables(state))
    else:
        content = draw(csv_tables(state))
        content = gzip.compress(content, mtime=0) if ending.endswith(".gz") else content
    if kind == "damaged" and content:
        content = mutated(content, np.random.default_rng(draw(st.integers(0, 2**32))))
    return name + ending, content


@st.composite
def rows(draw: Callable[[Any], Any], state: bool) -> tuple[list[str], list[list[str]]]:
    """Names of columns and rows of texts, long or wide, mostly readable; if `state`, wide with targets."""
    tame = draw(st.sampled_from((True, True, True, False)))
    wide = state or draw(st.booleans())

    def some(good: Sequence[str], bad: Sequence[str]) -> Any:
        return st.sampled_from(good) if tame else st.sampled_from((*good * (1 + 20 // len(good)), *bad))

    names = ["series", "time", *(CHANNELS if wide else ("channel", "value")), *(["state"] if state else [])]
    if wide:
        fields = [some(IDS, BAD_IDS), some(NUMBERS, BAD_STAMPS), *[some((*NUMBERS, ""), BAD_NUMBERS)] * 2]
        fields += [some(("ill", "well"), ("", "0", "nan"))] if state else []
    else:
        fields = [some(IDS, BAD_IDS), some(NUMBERS, BAD_STAMPS), some(CHANNELS, BAD_CHANNELS)]
        fields.append(some(NUMBERS, BAD_NUMBERS))
    if not tame:
        names = [one if draw(MOSTLY) else draw(st.sampled_from(BAD_COLUMNS)) for one in names]
    found = [list(row) for row in draw(st.lists(st.tuples(*fields), min_size=4 * tame, max_size=12))]
    if tame:
        found = sorted({(row[0], float(row[1]), *row[2 : 2 + (not wide)]): row for row in found}.items())
        found = [row for _, row in found if float(row[1]) >= 0]
        if state:
            states = {row[0]: row[4] for row in found}
            found = [[*row[:4], states[row[0]]] for row in found]
    return names, found


@st.composite
def csv_tables(draw: Callable[[Any], Any], state: bool) -> bytes:
    """Tables as text."""
    names, table = draw(rows(state))
    separator = draw(st.sampled_from((",", ",", ",", ";", "\t", "|")))
    ending = draw(st.sampled_from(("\n", "\n", "\r\n")))

    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if re.search(r"[,;\t|\"\n]", text) else text

    text = "".join(separator.join(map(cell, row)) + ending for row in (names, *table))
    encoding = draw(st.sampled_from(("utf-8",) * 6 + ("utf-8-sig", "utf-16", "latin-1")))
    return text.encode(encoding, "replace")


@st.composite
def parquet_tables(draw: Callable[[Any], Any], state: bool) -> bytes:
    """Tables with typed columns."""
    names, table = draw(rows(state))
    columns = []
    for place in range(len(names)):
        texts = [row[place] for row in table]
        usual = pyarrow.float64() if all(map(_is_number, texts)) else pyarrow.string()
        kind = usual if draw(MOSTLY) else draw(st.sampled_from(ARROW_TYPES))
        columns.append(_typed(texts, kind))
    target = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_arrays(columns, names), target, row_group_size=5)
    return target.getvalue().to_pybytes()


def _is_number(text: str) -> bool:
    with contextlib.suppress(ValueError):
        float(text)
        return True
    return not text


def _typed(texts: list[str], kind: Any) -> Any:
    """A column of this type from texts; texts that do not fit become something that does."""
    kinds = pyarrow.types

    def one(text: str, place: int) -> Any:
        if not text or kinds.is_null(kind):
            return None
        if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_dictionary(kind):
            return text
        number = float(text) if _is_number(text) else float(place)
        if kinds.is_floating(kind):
            return np.float16(min(max(number, -6e4), 6e4)) if kinds.is_float16(kind) else number
        whole = int(number) % 100 if np.isfinite(number) else place
        day = datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=whole)
        if kinds.is_boolean(kind):
            return bool(whole % 2)
        if kinds.is_integer(kind) or kinds.is_decimal(kind):
            return whole
        if kinds.is_binary(kind):
            return text.encode()
        if kinds.is_temporal(kind):
            if kinds.is_duration(kind):
                return datetime.timedelta(hours=whole)
            return day.time() if kinds.is_time(kind) else day.date() if kinds.is_date(kind) else day
        return [number] if kinds.is_list(kind) else {"a": whole}

    items = [one(text, place) for place, text in enumerate(texts)]
    if kinds.is_dictionary(kind):
        return pyarrow.array(items, pyarrow.string()).dictionary_encode()
    return pyarrow.array(items, kind)


@st.composite
def stream_lines(draw: Callable[[Any], Any]) -> bytes:
    """Lines of input of `logcde stream`."""
    texts = st.sampled_from((*NUMBERS, *BAD_NUMBERS, *BAD_STAMPS))
    scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.sampled_from(BAD_IDS))
    content = st.recursive(
        scalars, lambda one: st.lists(one, max_size=2) | st.dictionaries(texts, one, max_size=2), max_leaves=4
    )
    keys = ("series", "time", "values", "terms", "static", "origin", "predict", "close", "forget", "more")
    found = []
    for number in range(draw(st.integers(0, 6))):
        line = GOOD | {"series": draw(st.sampled_from(IDS)), "time": float(number)}
        for key in draw(st.lists(st.sampled_from(keys), max_size=2)):
            line[key] = draw(content)
        text = json.dumps(line).encode()
        if not draw(st.integers(0, 5)):
            text = mutated(text, np.random.default_rng(draw(st.integers(0, 2**32))))
        found.append(text + draw(st.sampled_from((b"\n", b"\n", b"\r\n", b"", b"\n\n"))))
    return b"".join(found)


assert UNWRITTEN not in CODES  # the output of these commands can be written
