"""`logcde`: its commands and their options. What a command needs is imported when it is run, and not before."""

import dataclasses
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, Any, NoReturn, Union

import tyro

from logcde.cli.config import with_config
from logcde.cli.describe import Describe
from logcde.cli.embed import Embed
from logcde.cli.evaluate import Evaluate
from logcde.cli.predict import Predict
from logcde.cli.report import Report
from logcde.cli.stream import Stream
from logcde.cli.stress import Stress
from logcde.cli.train import Train
from logcde.errors import LogcdeError


@dataclasses.dataclass(frozen=True)
class Cite:
    """Print what to cite, as BibTeX. Example: logcde cite >> references.bib"""

    def run(self) -> int:
        """Do it."""
        sys.stdout.write(PAPER)
        return 0


PAPER = """@article{walker2026faithful,
  title = {Faithful Embeddings of Irregular and Asynchronous Data for Online {Log-NCDEs}},
  author = {Walker, Benjamin and Bloch, Alexandre and Yang, Lingyi and Morley, Sam and Lyons, Terry},
  year = {2026},
}
"""

COMMANDS: dict[str, type] = {
    "describe": Describe,
    "embed": Embed,
    "train": Train,
    "evaluate": Evaluate,
    "predict": Predict,
    "stress": Stress,
    "report": Report,
    "stream": Stream,
    "cite": Cite,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. An error that a person can act on is a sentence, not a trace."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        default = with_config(given[1:], Train) if given[:1] == ["train"] else None
    except LogcdeError as error:
        sys.exit(f"logcde: {error}")
    brief = not given or given[0] in ("-h", "--help")
    options: dict[str, Any] = {} if default is None else {"default": default}
    command = tyro.cli(_choice(brief), prog="logcde", description=DESCRIPTION, args=given, **options)
    # Being asked to end is the same as Ctrl-C, which also works where a shell has it ignored for what runs behind it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        code = command.run()
    except LogcdeError as error:
        sys.exit(f"logcde: {error}")
    sys.exit(code)


def _choice(brief: bool) -> Any:
    """All commands, as tyro takes them. The list of them has a line for each, which is the first of its own help."""
    subcommands = (
        Annotated[
            command, tyro.conf.subcommand(name, description=_first_line(command.__doc__ or "") if brief else None)
        ]
        for name, command in COMMANDS.items()
    )
    return Union[tuple(subcommands)]  # noqa: UP007


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0]


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


DESCRIPTION = "Learning from irregular, asynchronous observation streams, without filling a gap."


if __name__ == "__main__":
    main()
