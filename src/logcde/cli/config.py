"""Options of a command from a TOML file: the same names as on the command line, which has the last word.

Paths in a file are relative to its folder, so that files can be moved together; those on the command line, as
everywhere, to the working directory.
"""

import dataclasses
import json
import os
import shlex
import tomllib
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import tyro

from logcde.errors import TableError

Kind = TypeVar("Kind")


def read_config(file: Path, kind: type[Kind]) -> Kind:
    """Options of a command, from a file. What it does not say has its default, or is still to be given."""
    from logcde.streams.schema import listed, nearest

    try:
        given = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise TableError(f"The configuration {file} cannot be read: {error.strerror}. Check the path.") from error
    except ValueError as error:
        raise TableError(f"The configuration {file} is not TOML: {error}.") from error
    known = [name for name, _ in _names(kind)]
    for name in given:
        if _flag(name) not in known:
            raise TableError(
                f"The configuration {file} has {name!r}, which is no option. {nearest(_flag(name), known)}The options "
                f"are {listed(known, 40)}."
            )
    options = read_from({_flag(name): value for name, value in given.items()}, kind, file.parent)
    return from_options(options, kind, f"The configuration {file}")


def with_config(arguments: Sequence[str], kind: type[Kind]) -> Kind | None:
    """The options of the file that these arguments name with --config, if they do."""
    for place, argument in enumerate(arguments):
        if argument == "--config" and place + 1 < len(arguments):
            return read_config(Path(arguments[place + 1]), kind)
        if argument.startswith("--config="):
            return read_config(Path(argument.removeprefix("--config=")), kind)
    return None


def options_of(command: Any) -> dict[str, Any]:
    """Options that are not as they are by default, by the names that they have on the command line."""
    given: dict[str, Any] = {}
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if dataclasses.is_dataclass(value):
            given |= options_of(value)
        elif value != field.default:
            plain = list(value) if isinstance(value, tuple) else value
            given[_flag(field.name)] = str(plain) if isinstance(plain, Path) else plain
    return given


def from_options(given: Mapping[str, Any], kind: type[Kind], where: str) -> Kind:
    """The command, or the part of one, that has these options; others are not looked at."""
    hints, parts = typing.get_type_hints(kind), {}
    for field in dataclasses.fields(typing.cast(Any, kind)):
        name, hint = _flag(field.name), hints[field.name]
        if dataclasses.is_dataclass(hint):
            parts[field.name] = from_options(given, typing.cast(type, hint), where)
        elif name in given:
            parts[field.name] = _value(name, given[name], hint, where)
        elif field.default is dataclasses.MISSING:
            parts[field.name] = tyro.MISSING
    return kind(**parts)


def written_to(options: Mapping[str, Any], kind: type, folder: Path) -> dict[str, Any]:
    """Options as they are in a file of this folder: paths are relative to it, unless they were given in full."""

    def path(given: str) -> str:
        try:
            return os.path.relpath(_real(Path(given)), folder.resolve())
        except ValueError:  # on another drive
            return str(_real(Path(given)))

    return _with_paths(options, kind, path)


def read_from(options: Mapping[str, Any], kind: type, folder: Path) -> dict[str, Any]:
    """Options of a file of this folder, with paths that are relative to the working directory."""
    return _with_paths(options, kind, lambda given: os.path.relpath(_real(folder / given)))


def _with_paths(options: Mapping[str, Any], kind: type, change: Callable[[str], str]) -> dict[str, Any]:
    paths = {name for name, hint in _names(kind) if Path in (hint, *typing.get_args(hint))}
    relative = (name for name in paths & set(options) if isinstance(options[name], str))
    return {**options, **{name: change(options[name]) for name in relative if not Path(options[name]).is_absolute()}}


def _real(path: Path) -> Path:
    """The path without links on the way, from which `..` leads where it seems to; the file itself may be one."""
    return path.parent.resolve() / path.name


def as_toml(options: dict[str, Any]) -> str:
    """A file that says the same.

    >>> as_toml({"file": "a.csv", "channels": ["pulse", "temp"], "sort": True})
    'file = "a.csv"\\nchannels = ["pulse", "temp"]\\nsort = true\\n'
    """
    # Of such values JSON is also TOML, but for one character.
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in options.items())
    return "".join(lines).replace("\x7f", "\\u007f")


def as_command(name: str, options: dict[str, Any], positional: str = "file") -> str:
    """A command that says the same.

    >>> as_command("train", {"file": "a.csv", "channels": ["pulse", "temp"], "sort": True})
    'logcde train a.csv --channels pulse temp --sort'
    """
    words = ["logcde", name, str(options[positional])]
    for option, value in options.items():
        if option != positional:
            words.append(f"--{option}")
            words += [] if value is True else [str(one) for one in (value if isinstance(value, list) else [value])]
    return shlex.join(words)


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _names(kind: type) -> Iterator[tuple[str, Any]]:
    """Options and their types; those of parts of a command are its own."""
    for name, hint in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint):
            yield from _names(typing.cast(type, hint))
        elif name != "config":
            yield _flag(name), hint


def _value(name: str, value: Any, hint: Any, where: str) -> Any:
    allowed = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if str in allowed and isinstance(value, int | float | date | time) and not isinstance(value, bool):
        value = str(value)  # As it would be on the command line.
    try:
        return msgspec.convert(value, hint, dec_hook=lambda kind, found: kind(found))
    except (msgspec.ValidationError, TypeError) as error:
        raise TableError(f"{where} has {name} = {value!r}: {str(error).replace(' | null', '')}.") from error
