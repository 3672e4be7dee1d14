"""The file in which `logcde stream` keeps its state: JSON, whole or not there, and for one model only."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from logcde._files import whole_file
from logcde.artefact.files import TEXT
from logcde.errors import ArtefactError, LogcdeError

FORMAT = 1


@dataclasses.dataclass
class Progress:
    """How far a stream has come: `lines` of input, `predictions` written, and `unsent` ones that were not.

    `series` is what `Session.state` says.
    """

    lines: int = 0
    predictions: int = 0
    unsent: str = ""
    series: list[Any] = dataclasses.field(default_factory=list)


class StateFile:
    """A file of the state of a stream through the model in this folder."""

    def __init__(self, path: Path, model: Path) -> None:
        self.path = path
        # It covers the numbers too, whose checksum it holds.
        self._model = hashlib.sha256((model / TEXT).read_bytes()).hexdigest()

    def read(self) -> Progress:
        """What was written last; the start of everything if there is no file yet."""
        try:
            document = json.loads(self.path.read_bytes())
            if document["format"] != FORMAT:
                raise ArtefactError(
                    f"The state in {self.path} has format {document['format']!r}; this version of logcde reads "
                    f"{FORMAT}."
                )
            if document["model"] != self._model:
                raise ArtefactError(
                    f"The state in {self.path} belongs to another model. Name the model that it was written with, or "
                    "another file."
                )
            return Progress(**document["progress"])
        except FileNotFoundError:
            return Progress()
        except LogcdeError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtefactError(
                f"{self.path} cannot be read as the state of a stream ({error}). Name another file."
            ) from error

    def write(self, progress: Progress) -> None:
        """Replace the file, once the new one is on the disk."""
        document = {"format": FORMAT, "model": self._model, "progress": vars(progress)}
        try:
            with whole_file(self.path) as temporary, temporary.open("w", encoding="utf-8") as out:
                # Numbers of a series that has overflowed need not be finite, and only this writes them all.
                out.write(json.dumps(document))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise ArtefactError(
                f"The state cannot be written to {self.path}: {error.strerror or error}. What was there before "
                "is as it was."
            ) from error
