"""`logcde`: dispatch to the commands, and print an error that the user can act on as one sentence.

Commands are dataclasses whose fields are options; tyro makes the parser from them. Every import here must stay light:
the modules of commands import JAX, pyarrow and Matplotlib inside functions.
"""

import dataclasses
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Annotated, Any, NoReturn, Union

import tyro

import logcde
from logcde.cli.advice import ADVICE, TRAINED_ADVICE
from logcde.cli.config import with_config
from logcde.cli.describe import Describe
from logcde.cli.embed import Embed
from logcde.cli.evaluate import Evaluate
from logcde.cli.export import Export
from logcde.cli.notices import tell, warnings_to
from logcde.cli.output import UNWRITTEN, standard_streams, unwritten
from logcde.cli.predict import Predict
from logcde.cli.report import Report
from logcde.cli.serve import Serve
from logcde.cli.stream import Stream
from logcde.cli.stress import Stress
from logcde.cli.train import Train
from logcde.cli.warm import Warm
from logcde.errors import LogcdeError, Remedy

DESCRIPTION = """Learn from irregular, asynchronous observation streams without interpolation.

`logcde --version` prints the version."""

PAPER = """@article{walker2026faithful,
  title = {Faithful Embeddings of Irregular and Asynchronous Data for Online {Log-NCDEs}},
  author = {Walker, Benjamin and Bloch, Alexandre and Yang, Lingyi and Morley, Sam and Lyons, Terry},
  year = {2026},
}
"""


@dataclasses.dataclass(frozen=True)
class Cite:
    """Print the paper to cite, as BibTeX."""

    def run(self) -> int:
        """Print the entry and return the exit code."""
        sys.stdout.write(PAPER)
        return 0


COMMANDS: dict[str, type] = {
    "describe": Describe,
    "embed": Embed,
    "train": Train,
    "evaluate": Evaluate,
    "predict": Predict,
    "stress": Stress,
    "report": Report,
    "stream": Stream,
    "serve": Serve,
    "warm": Warm,
    "export": Export,
    "cite": Cite,
}
COMMAND_ADVICE: dict[type, Mapping[Remedy, str]] = {Evaluate: TRAINED_ADVICE, Predict: TRAINED_ADVICE}
"""Commands that phrase some remedies in their own way."""
MOVED = {
    "reproduce": "python -m experiments NAME",
    "datasets": "python -m experiments datasets",
    "bench": "python -m benchmarks",
    "demo": "make demo",
}
"""Commands of version 0.1.0 that are no longer in the package, and what replaces them."""


class Failed(SystemExit):
    """The end of a command that was refused, after its message has been written to standard error."""

    def __init__(self, message: str) -> None:
        super().__init__(1)
        self.message = message


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its code; a `LogcdeError` becomes one message on standard error.

    A standard output that cannot be written stops no work: the rest of it is dropped, which a message and the exit code
    say in the end.
    """
    with standard_streams() as output:
        try:
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
        except SystemExit as end:  # of the parser, after help or about wrong options
            code = end.code
        except KeyboardInterrupt:
            code = 130
        output.flush()
        if output.error is not None:
            sys.stderr.write(f"{unwritten(output.error)}\n")
            code = code or UNWRITTEN
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
            raise Failed(code)
    sys.exit(code)


def _run(given: list[str]) -> int | str:
    """Run a command. Returns its exit code, or an error message."""
    if given == ["--version"]:
        sys.stdout.write(f"logcde {logcde.__version__}\n")
        return 0
    if given and given[0] in MOVED:
        instead = f"Run `{MOVED[given[0]]}` in a clone of the repository."
        return f"logcde: {given[0]!r} is no longer a command of logcde. {instead}"
    try:
        default = with_config(given[1:], Train) if given[:1] == ["train"] else None
    except LogcdeError as error:
        return f"logcde: {error.phrased(ADVICE)}"
    brief = not given or given[0] in ("-h", "--help")
    options: dict[str, Any] = {} if default is None else {"default": default}
    command = tyro.cli(_parser_type(brief), prog="logcde", description=DESCRIPTION, args=given, **options)
    # SIGTERM acts as Ctrl-C, and Ctrl-C also works in background jobs, for which shells ignore SIGINT.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    advice = COMMAND_ADVICE.get(type(command), ADVICE)
    try:
        with warnings_to(lambda one: tell([one.phrased(advice)]), repeated=False):
            return command.run()
    except LogcdeError as error:
        return f"logcde: {error.phrased(advice)}"
    except MemoryError as error:
        detail = f" {error}" if str(error) else ""
        return f"logcde: there is not enough memory for this.{detail} Choose smaller options, or fewer rows."


def _parser_type(brief: bool) -> Any:
    """The union of all commands; if `brief`, each is described by the first line of its docstring."""
    subcommands = (
        Annotated[
            command, tyro.conf.subcommand(name, description=_first_line(command.__doc__ or "") if brief else None)
        ]
        for name, command in COMMANDS.items()
    )
    return Union[tuple(subcommands)]  # noqa: UP007


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0]


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
