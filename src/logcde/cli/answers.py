"""What is to be predicted: a column that says it of every series, in the table itself or in another one."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from logcde.errors import TableError
from logcde.report.record import Kind

MOST_CLASSES = 20
"""Whole numbers that are taken for classes, unless the user says otherwise."""


@dataclasses.dataclass(frozen=True)
class Answers:
    """Where the answers are that a model should give."""

    target: str | None = None
    """Column of what is to be predicted: of FILE, if it is the same in all rows of a series, or of --targets."""
    targets: Path | None = None
    """Another table with that column and one of series, named as in FILE; for forecasts with one of stamps as well,
    and all further columns are predicted if --target names none."""
    only_matched: bool = False
    """Leave out series that are only in one of the two tables, instead of refusing them."""


def infer(values: Sequence[Any], target: str) -> tuple[Kind, str]:
    """Whether these are classes or numbers, and why.

    >>> infer(["yes", "no", "yes"], "died")
    ('classify', "the values of 'died' are text, 2 different ones")
    >>> infer([1.5, 2.0, 7.25], "days")[0], infer([0, 1, 1, 0], "died")[0]
    ('regress', 'classify')
    """
    different = set(values)
    if any(isinstance(value, str | bool) for value in values):
        kind = "text" if isinstance(values[0], str) else "true or false"
        return "classify", f"the values of {target!r} are {kind}, {len(different)} different ones"
    whole = all(math.isfinite(value) and value == int(value) for value in different)
    if whole and len(different) <= min(MOST_CLASSES, max(2, len(values) // 2)):
        return "classify", f"the values of {target!r} are whole numbers, and only {len(different)} different ones"
    what = "whole numbers, and many different ones" if whole else "numbers"
    return "regress", f"the values of {target!r} are {what}"


def read_target(path: Path, series: str, target: str, text: bool) -> dict[Any, Any]:
    """The value of a column for each series that has one. Ids stay text if those of the observations are."""
    from logcde.streams.backends import arrow
    from logcde.streams.files import open_table

    pyarrow, file = arrow(), open_table(path)
    check_ids(path, series, tuple(file.types))
    if target == series:
        raise TableError(f"The column {target!r} is named for two purposes. Name another with --target.")
    pieces = [_pairs(piece) for piece in file.pieces([series, target], [])]
    if not pieces:
        raise TableError(f"{path} has no rows. There is nothing to learn from.")
    pairs = _pairs(pyarrow.concat_tables(pieces))
    column = _numbers(pairs[target]) if file.untyped else pairs[target]
    column = column.cast("double") if pyarrow.types.is_decimal(column.type) else column
    kinds = (pyarrow.types.is_timestamp, pyarrow.types.is_date, pyarrow.types.is_duration, pyarrow.types.is_nested)
    if any(kind(column.type) for kind in kinds):
        raise TableError(
            f"The column {target!r} of {path} is {column.type}. Models predict numbers and classes: convert it."
        )
    found: dict[Any, Any] = {}
    for one, value in zip(ids_of(pairs[series], text), column.to_pylist(), strict=True):
        if one in found:
            raise TableError(
                f"The column {target!r} of {path} has {found[one]!r} and {value!r} for the series {one!r}. Give each "
                "series one value. To predict values that change with time, pass --task forecast."
            )
        found[one] = value
    return found


def check_ids(path: Path, series: str, columns: tuple[str, ...]) -> None:
    """Refuse a table of answers that does not say which series they belong to."""
    from logcde.streams.schema import missing

    if series not in columns:
        raise TableError(
            f"{path}: {missing(series, columns)} The column of series ids has the same name in both tables: rename it "
            "in one of them."
        )


def ids_of(column: Any, text: bool) -> list[Any]:
    """Ids of series; whole numbers that are written as text are numbers, unless ids are `text`."""
    from logcde.streams.backends import arrow

    return (_numbers(column) if not text and arrow().types.is_string(column.type) else column).to_pylist()


def match(
    found: Mapping[Any, Any], ids: Sequence[Any], what: str, where: Path, table: Path, only_matched: bool
) -> list[bool]:
    """Which series have an answer. Where tables do not fit each other, that is refused unless it is wanted."""
    from logcde.streams.schema import listed

    known = [one in found for one in ids]
    lacking = [one for one, seen in zip(ids, known, strict=True) if not seen]
    if len(lacking) == len(ids):
        raise TableError(
            f"{where} has {what} of none of the series of {table}: there {listed(list(found), 3) or 'there are none'}, "
            f"here {listed(ids, 3)}. See whether the ids are written alike."
        )
    further = [one for one in found if one not in set(ids)]
    on = f"or pass --only-matched to go on with the {sum(known)} series that are in both"
    if lacking and not only_matched:
        raise TableError(
            f"{where} has no {what} of {len(lacking)} of {len(ids)} series, {listed(lacking, 3)}. Add them, {on}."
        )
    if further and not only_matched:
        raise TableError(
            f"{where} has {what} of {len(further)} series that are not in {table}, {listed(further, 3)}. See whether "
            f"the ids are written alike, {on}."
        )
    return known


def as_classes(values: Sequence[Any], target: str) -> list[Any]:
    """Whole numbers that are stored as fractions, as whole numbers; fractions are no classes.

    >>> as_classes([0.0, 1.0], "died")
    [0, 1]
    """
    found = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    wrong = next((value for value in found if isinstance(value, float)), None)
    if wrong is not None:
        raise TableError(
            f"{target!r} has the value {wrong}, which names no class. To predict numbers, use --task regress."
        )
    return found


def as_numbers(found: Mapping[Any, Any], target: str, where: Path) -> None:
    """Refuse what is no finite number."""
    for series, value in found.items():
        if isinstance(value, str):
            raise TableError(
                f"The column {target!r} of {where} has {value!r} for the series {series!r}, which is not a number. "
                "Name another column with --target; for classes, train with --task classify."
            )
        if not math.isfinite(value):
            raise TableError(
                f"The column {target!r} of {where} has {value} for the series {series!r}. Numbers to learn are finite: "
                "mend it, or leave that series out."
            )


def _pairs(table: Any) -> Any:
    """All different rows that are complete; NaN is missing."""
    from logcde.streams.backends import arrow

    compute = arrow().compute
    for place, field in enumerate(table.schema):
        if arrow().types.is_floating(field.type):
            filled = compute.if_else(compute.is_nan(table[place]), None, table[place])
            table = table.set_column(place, field.name, filled)
    table = table.drop_null()
    return table.group_by(table.schema.names, use_threads=False).aggregate([])


def _numbers(column: Any) -> Any:
    """Text as whole numbers or numbers, if all of it is."""
    from logcde.streams.backends import arrow

    for kind in ("int64", "double"):
        try:
            return arrow().compute.cast(arrow().compute.utf8_trim_whitespace(column), kind)
        except arrow().ArrowInvalid:
            continue
    return column
