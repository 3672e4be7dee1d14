"""Save and load anything that a saved model may contain."""

from pathlib import Path
from typing import Any

import equinox as eqx

from logcde import artefact


@artefact.register
class Holder(eqx.Module):
    """A model that has one part."""

    part: Any


def saved_and_loaded(part: Any, folder: Path) -> Any:
    """The same thing after a round trip through files."""
    artefact.save(Holder(part), folder / "saved")
    return artefact.load(folder / "saved").part
