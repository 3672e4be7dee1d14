"""Options of a command in a TOML file, with the names of the command line, which takes precedence.

Paths in a file are relative to its folder, so that data and configuration can be moved together; paths on the command
line are relative to the working directory.
"""

import dataclasses
import json
import os
import re
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

from logcde._files import read_regular
from logcde.errors import TableError

LARGEST = 1 << 20
"""Bytes of a configuration."""
URL = re.compile("[a-zA-Z][a-zA-Z0-9+.-]+:/")
"""The beginning of a URL, whose slashes `Path` merges."""
T = TypeVar("T")


def read_config(file: Path, command: type[T]) -> T:
    """The command whose options a file holds; others have their defaults, or `tyro.MISSING` if they have none."""
    from logcde.streams.schema import listed, nearest

    try:
        given = tomllib.loads(read_regular(file, LARGEST).decode())
    except OSError as error:
        raise TableError(f"The configuration {file} cannot be read: {error.strerror}.", "Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise TableError(f"The configuration {file} is not TOML: {error}.") from error
    known = [name for name, _ in _names(command)]
    for name in given:
        if _flag(name) not in known:
            raise TableError(
                f"The configuration {file} has {name!r}, which is not an option.",
                f"{nearest(_flag(name), known)}The options are {listed(known, 40)}.",
            )
    options = with_paths_from({_flag(name): value for name, value in given.items()}, command, file.parent)
    return from_options(options, command, f"The configuration {file}")


def with_config(arguments: Sequence[str], command: type[T]) -> T | None:
    """The command of the file that these arguments name with --config; None if they name none."""
    for place, argument in enumerate(arguments):
        if argument == "--config" and place + 1 < len(arguments):
            return read_config(Path(arguments[place + 1]), command)
        if argument.startswith("--config="):
            return read_config(Path(argument.removeprefix("--config=")), command)
    return None


def options_of(command: Any) -> dict[str, Any]:
    """Options that differ from their defaults, by their names on the command line."""
    given: dict[str, Any] = {}
    for field in dataclasses.fields(command):
        value = getattr(command, field.name)
        if dataclasses.is_dataclass(value):
            given |= options_of(value)
        elif value != field.default:
            plain = list(value) if isinstance(value, tuple) else value
            given[_flag(field.name)] = str(plain) if isinstance(plain, Path) else plain
    return given


def from_options(given: Mapping[str, Any], command: type[T], where: str) -> T:
    """A command, or an option group of one, from options by name; `where` names their source in errors.

    Options that `command` does not have are ignored.
    """
    hints, parts = typing.get_type_hints(command), {}
    for field in dataclasses.fields(typing.cast(Any, command)):
        name, hint = _flag(field.name), hints[field.name]
        if dataclasses.is_dataclass(hint):
            parts[field.name] = from_options(given, typing.cast(type, hint), where)
        elif name in given:
            parts[field.name] = _value(name, given[name], hint, where)
        elif field.default is dataclasses.MISSING:
            parts[field.name] = tyro.MISSING
    return command(**parts)


def with_paths_relative_to(options: Mapping[str, Any], command: type, folder: Path) -> dict[str, Any]:
    """Options with relative paths rewritten to be relative to a folder in which they are saved."""

    def path(given: str) -> str:
        try:
            return os.path.relpath(_real(Path(given)), folder.resolve())
        except ValueError:  # on another drive
            return str(_real(Path(given)))

    return _with_paths(options, command, path)


def with_paths_from(options: Mapping[str, Any], command: type, folder: Path) -> dict[str, Any]:
    """Options that were saved in a folder, with relative paths rewritten to be relative to the working directory."""
    return _with_paths(options, command, lambda given: os.path.relpath(_real(folder / given)))


def _with_paths(options: Mapping[str, Any], command: type, change: Callable[[str], str]) -> dict[str, Any]:
    paths = {name for name, hint in _names(command) if Path in (hint, *typing.get_args(hint))}
    given = (name for name in paths & set(options) if isinstance(options[name], str))
    relative = (name for name in given if not (Path(options[name]).is_absolute() or URL.match(options[name])))
    return {**options, **{name: change(options[name]) for name in relative}}


def _real(path: Path) -> Path:
    """The path with symbolic links among its parents resolved, so that `..` means the folder above."""
    return path.parent.resolve() / path.name


def as_toml(options: dict[str, Any]) -> str:
    """Options as the text of a TOML file.

    >>> as_toml({"file": "a.csv", "channels": ["pulse", "temp"], "sort": True})
    'file = "a.csv"\\nchannels = ["pulse", "temp"]\\nsort = true\\n'
    """
    # JSON of strings, numbers, booleans and lists is TOML, except for the delete character.
    lines = (f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in options.items())
    return "".join(lines).replace("\x7f", "\\u007f")


def as_command(name: str, options: dict[str, Any], positional: str = "file") -> str:
    """Options as a command line.

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


def _names(command: type) -> Iterator[tuple[str, Any]]:
    """Options and their types, with those of option groups."""
    for name, hint in typing.get_type_hints(command).items():
        if dataclasses.is_dataclass(hint):
            yield from _names(typing.cast(type, hint))
        elif name != "config":
            yield _flag(name), hint


def _value(name: str, value: Any, hint: Any, where: str) -> Any:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    # TOML has no null, so messages about types need not mention it.
    allowed = tuple(one for one in typing.get_args(hint) if one is not types.NoneType) if union else (hint,)
    if str in allowed and isinstance(value, int | float | date | time) and not isinstance(value, bool):
        value = str(value)  # As on the command line.
    try:
        return msgspec.convert(value, typing.Union[allowed], dec_hook=lambda cls, found: cls(found))  # noqa: UP007
    except (msgspec.ValidationError, TypeError) as error:
        raise TableError(f"{where} has {name} = {value!r}: {error}.") from error
