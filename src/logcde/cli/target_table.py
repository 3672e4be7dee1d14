"""Read tables of targets, and match their series with those of the observations."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from logcde.errors import TableError, Where


def read_target(path: Path, series: str, target: str, text: bool) -> dict[Any, Any]:
    """The target of each series that has one.

    Args:
        path: The table.
        series: Its column of series ids.
        target: Its target column.
        text: Ids are text, also where they look like integers.
    """
    from logcde.streams.files import open_tables
    from logcde.streams.frames import arrow

    pyarrow, file = arrow(), open_tables(path)
    _check_series_column(path, series, tuple(file.types))
    if target == series:
        raise TableError(f"The column {target!r} is named for two purposes.", "Name another with --target.")
    nested = next((name for name in (series, target) if pyarrow.types.is_nested(file.types[name])), None)
    if nested is not None:
        raise _unfit(path, nested, file.types[nested])
    pieces = [_distinct_rows(piece) for piece in file.pieces([series, target], [])]
    if not pieces:
        raise TableError(f"{path} has no rows.", "Give at least one target.")
    pairs = _distinct_rows(pyarrow.concat_tables(pieces))
    column = _as_numbers_if_possible(pairs[target]) if file.untyped else pairs[target]
    column = column.cast("double") if pyarrow.types.is_decimal(column.type) else column
    refused = (pyarrow.types.is_timestamp, pyarrow.types.is_date, pyarrow.types.is_duration)
    if any(is_type(column.type) for is_type in refused):
        raise _unfit(path, target, column.type)
    found: dict[Any, Any] = {}
    for one, value in zip(_series_ids(pairs[series], text), column.to_pylist(), strict=True):
        if one in found:
            raise TableError(
                f"The column {target!r} of {path} has {found[one]!r} and {value!r} for the series {one!r}.",
                "Give each series one value. To predict values that change with time, pass --task forecast.",
                where=Where(series=one),
            )
        found[one] = value
    return found


def _unfit(path: Path, column: str, kind: Any) -> TableError:
    return TableError(
        f"The column {column!r} of {path} has the type {kind}.",
        "Series have whole numbers or text as ids, and models predict numbers and classes: convert it.",
    )


def read_ids(path: Path, series: str, text: bool) -> dict[Any, None]:
    """The series ids of a table."""
    from logcde.streams.files import open_tables

    file = open_tables(path)
    _check_series_column(path, series, tuple(file.types))
    return dict.fromkeys(one for piece in file.pieces([series], []) for one in _series_ids(piece[series], text))


def _check_series_column(path: Path, series: str, columns: tuple[str, ...]) -> None:
    from logcde.streams.schema import missing

    if series not in columns:
        raise TableError(
            f"{path}: {missing(series, columns)}",
            "The column of series ids must have the same name in both tables: rename it in one of them.",
        )


def _series_ids(column: Any, text: bool) -> list[Any]:
    """Series ids; integers that are written as text become integers, unless ids are `text`."""
    from logcde.streams.frames import arrow

    convert = not text and arrow().types.is_string(column.type)
    return (_as_numbers_if_possible(column) if convert else column).to_pylist()


def match_series(
    found: Mapping[Any, Any], ids: Sequence[Any], what: str, file: Path, table: Path, only_matched: bool
) -> list[bool]:
    """Which series have a target.

    Args:
        found: Series of the table of targets.
        ids: Series of the table of observations.
        what: Name of the targets, for errors.
        file: The table of targets, for errors.
        table: The table of observations, for errors.
        only_matched: Accept series that are in one table only.
    """
    from logcde.streams.schema import listed

    known = [one in found for one in ids]
    lacking = [one for one, seen in zip(ids, known, strict=True) if not seen]
    alike = "check that both tables write ids in the same way"
    if len(lacking) == len(ids):
        there = listed(list(found), 3) or "none"
        raise TableError(
            f"{file} has {what} of none of the series of {table}. Its ids are {there}; those of {table} are "
            f"{listed(ids, 3)}.",
            f"{alike.capitalize()}.",
        )
    further = [one for one in found if one not in set(ids)]
    skip = f"or pass --only-matched to use the {sum(known)} series that are in both"
    if lacking and not only_matched:
        raise TableError(
            f"{file} has no {what} of {len(lacking)} of {len(ids)} series, {listed(lacking, 3)}.",
            f"Add them, {skip}.",
            where=Where(series=lacking[0]),
        )
    if further and not only_matched:
        raise TableError(
            f"{file} has {what} of {len(further)} series that are not in {table}, {listed(further, 3)}.",
            f"{alike.capitalize()}, {skip}.",
            where=Where(series=further[0]),
        )
    return known


def _distinct_rows(table: Any) -> Any:
    """The distinct rows without missing values; NaN is missing."""
    from logcde.streams.frames import arrow

    compute = arrow().compute
    for place, field in enumerate(table.schema):
        if arrow().types.is_floating(field.type):
            filled = compute.if_else(compute.is_nan(table[place]), None, table[place])
            table = table.set_column(place, field.name, filled)
    table = table.drop_null()
    return table.group_by(table.schema.names, use_threads=False).aggregate([])


def _as_numbers_if_possible(column: Any) -> Any:
    """Text as integers or floats, if all of it can be parsed."""
    from logcde.streams.frames import arrow

    for dtype in ("int64", "double"):
        try:
            return arrow().compute.cast(arrow().compute.utf8_trim_whitespace(column), dtype)
        except arrow().ArrowInvalid:
            continue
    return column
