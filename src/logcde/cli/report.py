"""`logcde report`: write an HTML page about a training run."""

import dataclasses
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import tyro

from logcde.cli.trained import needing, saved_type
from logcde.errors import ArtefactError


@dataclasses.dataclass(frozen=True)
class Report:
    """Write one HTML page about a trained model: scores, predictions, training, data, settings, and how to repeat it.

    The page is self-contained: one file to send or archive. Examples:

    logcde report model/

    logcde report model/ -o model.html
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder that logcde train wrote."""
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write; by default report.html in that folder."""

    def run(self) -> int:
        """Write the page and return the exit code."""
        try:
            target = write_report(self.model, self.output)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped. No report was written.\n")
            return 130
        sys.stdout.write(f"Wrote the report to {target}. Open it in a browser.\n")
        return 0


def write_report(folder: Path, output: Path | None = None) -> Path:
    """Write the page about the model in a folder. Returns its path."""
    from logcde._files import write_whole
    from logcde.artefact.files import REPORT
    from logcde.cli.config import as_toml
    from logcde.report.page import page
    from logcde.report.record import RUN, read_run

    saved_type(folder)
    run = read_run(folder)
    if run is None:
        raise ArtefactError(
            f"{folder} has no {RUN}, the record of a training run: its model was saved from Python.",
            "Reports are about models that logcde train wrote.",
        )
    target = folder / REPORT if output is None else output
    if target.is_dir():
        raise ArtefactError(f"{target} is a folder.", f"Give the name of a file with -o, such as {target / REPORT}.")
    if target.resolve().parent == folder.resolve() and target.name != REPORT:
        raise ArtefactError(
            f"A report in the folder of its model must be named {REPORT}, not {target.name}.",
            "Choose another folder with -o, or leave out -o.",
        )
    with needing_figures():
        text = page(run, as_toml(run.config))
    try:
        return write_whole(target, text)
    except OSError as error:
        raise ArtefactError(
            f"{target} cannot be written: {error.strerror or error}. Nothing was left behind.",
            "Check the permissions and the free space of its folder, or choose another path with -o.",
        ) from error


def needing_figures() -> AbstractContextManager[None]:
    """Name the extra to install where Matplotlib is missing."""
    return needing("matplotlib", "Reports need Matplotlib", "plot")
