"""`logcde export`: write a network as programs that run without this library."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from logcde.cli.trained import load_trained, saved_type
from logcde.errors import ModelError

if TYPE_CHECKING:
    from logcde.models import AbstractOnlineModel


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a network as StableHLO programs, which run without this library, in JAX or in another language.

    The programs take log-signatures: of whole series (predict), or interval by interval (start, advance, read). Each is
    written for JAX (.bin) and as portable bytecode for other compilers (.mlir); signature.json says what they take and
    give. Learners without a network, such as ridge and trees, cannot be exported. Examples:

    logcde export model/ -o exported --intervals 48

    logcde export model/ -o exported --intervals 48 --rows 1
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")]
    """Folder of a trained model."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Folder to write."""
    intervals: int
    """Intervals that `predict` takes; shorter series are padded by zeros."""
    rows: int | None = None
    """Series in a call, for compilers that need a fixed number; by default any number."""

    def run(self) -> int:
        """Write the programs and return the exit code."""
        from logcde.export import export

        model, facts = network_in(self.model)
        try:
            folder = export(model, self.output, intervals=self.intervals, series=self.rows, facts=facts)
        except KeyboardInterrupt:
            sys.stderr.write("logcde: stopped. Nothing was written.\n")
            return 130
        sys.stdout.write(f"Wrote the programs predict, start, advance and read to {folder}.\n")
        return 0


def network_in(folder: Path) -> "tuple[AbstractOnlineModel, dict[str, Any]]":
    """The network in a folder, and what is known of its outputs and intervals."""
    from logcde.artefact import load
    from logcde.models import AbstractOnlineModel
    from logcde.models.series import EmbeddedModel

    facts: dict[str, Any] = {}
    if saved_type(folder).startswith("estimators."):
        trained = load_trained(folder)
        found, facts = trained.estimator.model_, {"task": trained.task.name}
        if trained.classes is not None:
            facts["classes"] = trained.classes
        network: Any = found.sequence if isinstance(found, EmbeddedModel) else found
    else:
        network = load(folder)
    if not isinstance(network, AbstractOnlineModel):
        raise ModelError(
            f"{folder} holds no network on log-signatures, but a {type(network).__name__}.",
            "Train one with --learner slice or --learner ncde; other learners run in this library only.",
        )
    if network.spec is not None:
        facts |= {"partition": repr(network.spec.partition), "channels": network.spec.coordinates.schema.channels}
    return network, facts
