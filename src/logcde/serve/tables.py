"""Tables of stores in SQL databases, and their rows. Stamps, predictions and ids are JSON."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from logcde.serve.store import DeadLetter, Observation, Outgoing, SeriesRecord

FORMAT = 2
"""Of the tables."""
WHOLE, REAL, TEXT, BYTES = "BIGINT", "DOUBLE PRECISION", "TEXT", "BYTEA"
TABLES: dict[str, dict[str, str]] = {
    "facts": {"name": TEXT, "value": TEXT},
    "models": {"number": WHOLE, "digest": TEXT},
    "counters": {"name": TEXT, "value": WHOLE},
    "leases": {
        "feed": TEXT, "part": WHOLE, "epoch": WHOLE, "owner": TEXT, "position": WHOLE, "published": WHOLE,
    },
    "series": {
        "key": WHOLE, "name": TEXT, "part": WHOLE, "revision": WHOLE, "began": REAL, "updated": REAL, "events": WHOLE,
        "stamp": TEXT, "time": REAL, "predicted": TEXT, "prediction": TEXT, "risk": REAL, "alerts": TEXT,
        "beside": TEXT, "archived": WHOLE,
    },
    "states": {"key": WHOLE, "model": WHOLE, "revision": WHOLE, "state": BYTES},
    "observations": {
        "key": WHOLE, "number": WHOLE, "received": REAL, "stamp": TEXT, "seen": TEXT, "predicted": TEXT,
        "prediction": TEXT, "beside": TEXT, "terms": TEXT, "continuous": TEXT,
    },
    "ids": {"id": BYTES, "digest": BYTES, "key": WHOLE, "number": WHOLE, "received": REAL},
    "outgoing": {"number": WHOLE, "part": WHOLE, "kind": TEXT, "series": TEXT, "content": TEXT},
    "dead": {
        "number": WHOLE, "digest": BYTES, "received": REAL, "reason": TEXT, "error": TEXT, "content": BYTES,
        "times": WHOLE,
    },
}  # fmt: skip
"""Columns and their types. Stamps, predictions and ids are JSON."""
KEYS = {
    "facts": "name", "models": "number", "counters": "name", "leases": "feed, part", "series": "key",
    "states": "key, model", "observations": "key, number", "ids": "id", "outgoing": "number", "dead": "number",
}  # fmt: skip
OPTIONAL = {
    "owner", "published", "predicted", "prediction", "risk", "beside", "terms", "continuous",
}  # fmt: skip
"""Columns that may be null."""
INDEXES = """
CREATE UNIQUE INDEX series_by_name ON series (name);
CREATE INDEX series_by_risk ON series (archived, risk);
CREATE INDEX series_by_update ON series (archived, updated);
CREATE INDEX ids_by_age ON ids (received);
CREATE INDEX outgoing_by_part ON outgoing (part, number);
CREATE UNIQUE INDEX dead_by_content ON dead (digest)
"""


def to_text(value: Any) -> str:
    """JSON as text, without the characters that it escapes."""
    return msgspec.json.encode(value).decode()


def schema(blob: str, after_table: str = "") -> Iterator[str]:
    """Statements that create all tables.

    Args:
        blob: The type of bytes.
        after_table: Options of a table.
    """
    for table, columns in TABLES.items():
        fields = [
            f"{name} {blob if type == BYTES else type}{'' if name in OPTIONAL else ' NOT NULL'}"
            for name, type in columns.items()
        ]
        yield f"CREATE TABLE {table} ({', '.join(fields)}, PRIMARY KEY ({KEYS[table]})){after_table}"
    yield from INDEXES.split(";")


def id_digest(key: int, id: str) -> bytes:
    """An event id of a series; of one length, and of bytes that every database takes."""
    return hashlib.blake2b(b"%d:" % key + id.encode(), digest_size=16).digest()


def _optional(value: Any) -> str | None:
    return None if value is None else to_text(value)


def series_row(one: SeriesRecord) -> tuple[Any, ...]:
    """The row of a series."""
    prediction = None if one.predicted is None else to_text(one.prediction)
    place = (one.events, to_text(one.stamp), one.time, _optional(one.predicted), prediction, one.risk)
    rest = (to_text(list(one.alerts)), _optional(one.beside), int(one.archived))
    return (one.key, to_text(one.name), one.partition, one.revision, one.began, one.updated, *place, *rest)


def observation_row(one: Observation) -> tuple[Any, ...]:
    """The row of an observation."""
    predicted = (None, None) if one.predicted is None else (to_text(one.predicted), to_text(one.prediction))
    rest = (*predicted, _optional(one.beside), _optional(one.terms), _optional(one.continuous))
    return one.key, one.number, one.received, to_text(one.stamp), to_text(one.values), *rest


def observation(row: Sequence[Any]) -> Observation:
    """The observation of a row."""
    key, number, received, stamp, values, predicted, prediction, beside, terms, continuous = row
    seen, made = (parsed(stamp), parsed(values)), (parsed(predicted), parsed(prediction), parsed(beside))
    return Observation(key, number, received, *seen, *made, parsed(terms), parsed(continuous))


def dead_rows(letters: Sequence[DeadLetter]) -> list[tuple[Any, ...]]:
    """A row for each kind of refused observation, with how often it came."""
    found: dict[bytes, list[Any]] = {}
    for one in letters:
        digest = hashlib.sha256(one.reason.encode() + b"\0" + one.text).digest()
        row = found.setdefault(digest, [digest, one.received, one.reason, one.error.replace("\0", "␀"), one.text, 0])
        row[1], row[-1] = one.received, row[-1] + one.times
    return [tuple(row) for row in found.values()]


def record(row: Sequence[Any], states: tuple[bytes | None, ...] = ()) -> SeriesRecord:
    """The series of a row, with states from elsewhere."""
    key, name, part, revision, began, updated, events, stamp, time, predicted, prediction, risk, *rest = row
    alerts, beside, archived = rest
    known = (began, updated, events, parsed(stamp), time, parsed(predicted), parsed(prediction), risk)
    return SeriesRecord(
        key, parsed(name), part, states, revision, *known, tuple(parsed(alerts)), parsed(beside), bool(archived)
    )


def outgoing_entry(row: Sequence[Any]) -> Outgoing:
    """The outgoing entry of a row."""
    kind, series, content, number = row
    return Outgoing(kind, parsed(series), parsed(content), number)


def parsed(text: str | None) -> Any:
    """The value of JSON; None for NULL."""
    return None if text is None else msgspec.json.decode(text)
