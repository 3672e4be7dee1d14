"""Coupled sinusoids, learnt in one observation regime and tested in all (`sec:sinusoid`, `app:sinusoid`)."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from experiments.runner.recipes import Curve, Variant, best_of, keys_of, validation_error
from experiments.sinusoid import report
from experiments.sinusoid.cells import SinusoidCell, SinusoidConfig, SinusoidOutcome
from logcde.datasets import REGIMES, sinusoids
from logcde.errors import ExperimentError, NonFiniteError
from logcde.models import predict
from logcde.train import score

EXAMPLES = 3


class Sinusoid(AbstractExperiment[SinusoidConfig, SinusoidCell, SinusoidOutcome]):
    """The second experiment of the paper."""

    name: ClassVar[str] = "sinusoid"
    title: ClassVar[str] = "Synthetic coupled data: learn in one observation regime, predict in all"
    config: ClassVar = SinusoidConfig
    cell: ClassVar = SinusoidCell
    outcome: ClassVar = SinusoidOutcome

    def cells(self, config: SinusoidConfig, done: Mapping[SinusoidCell, SinusoidOutcome]) -> Sequence[SinusoidCell]:
        """Variants and candidates; once all candidates are done, also the best one with all seeds."""
        variants = [
            cell for name, variant in config.variants.items() for cell in _cells(config, name, variant, config.seeds)
        ]
        chosen = best_of(validation_errors(config, done))
        ours = [] if chosen is None else _cells(config, "ours", config.candidates[chosen], config.seeds)
        return [*variants, *_candidates(config), *ours]

    def can_run(self, cell: SinusoidCell) -> bool:
        """Always: data are generated."""
        return True

    def run(self, cell: SinusoidCell, tell: Tell, scratch: Path) -> SinusoidOutcome:
        """Train and test one model."""
        data = sinusoids(cell.regime, cell.train, (cell.seed, 0)).data
        inputs, basis = cell.model.inputs(data)
        for_model, for_training = keys_of(cell.seed)
        model = cell.model.model(basis, data.targets.shape[-1], for_model)
        targets, count = data.targets, round(cell.train * cell.validation) or cell.test
        drawn = {regime: sinusoids(regime, count, (cell.seed, 2 if cell.validation else 1)).data for regime in REGIMES}
        held_out = {regime: (cell.model.inputs(other)[0], other.targets) for regime, other in drawn.items()}
        if cell.validation:
            held_out[cell.regime] = inputs[-count:], targets[-count:]
            inputs, targets = inputs[:-count], targets[:-count]
        try:
            result = cell.training(model, inputs, targets, held_out[cell.regime], for_training, tell)
        except NonFiniteError:
            if not cell.validation:
                raise
            nothing = dict.fromkeys(REGIMES)
            return SinusoidOutcome(mse=nothing, curve=Curve([], []), parameters=0, train_seconds=0.0)
        few = predict(result.last, held_out[cell.regime][0][:EXAMPLES])
        return SinusoidOutcome(
            mse={regime: score(result.last, *test) for regime, test in held_out.items()},
            curve=Curve.of(result),
            parameters=result.summary.parameters,
            train_seconds=result.summary.seconds,
            predictions=[] if cell.validation else np.round(np.asarray(few, float), 4).tolist(),
        )

    def conclude(self, config: SinusoidConfig, records: Mapping[SinusoidCell, Record], folder: Path) -> Conclusion:
        """Write tables and figures and judge the claims."""
        done = {cell: record.outcome for cell, record in records.items()}
        by_variant = {
            name: {(cell.regime, cell.seed): records[cell] for cell in cells if cell in records}
            for name, cells in itertools.groupby(self.cells(config, done), lambda cell: cell.variant)
        }
        searched = validation_errors(config, done)
        if not by_variant["printed"]:
            raise ExperimentError("No cell of the variant 'printed' is finished, so there is no conclusion.")
        return report.conclude(config, by_variant, searched, best_of(searched), folder)


def validation_errors(config: SinusoidConfig, done: Mapping[SinusoidCell, SinusoidOutcome]) -> dict[str, float | None]:
    """Validation error of each candidate over all pairs of regimes; None if some cells are missing."""
    errors: dict[str, float | None] = {}
    for name in config.candidates:
        mine = [cell for cell in _candidates(config) if cell.variant == f"candidate {name}"]
        known = all(cell in done for cell in mine)
        found = [error for cell in mine if cell in done for error in done[cell].mse.values()]
        errors[name] = validation_error(math.inf if error is None else error for error in found) if known else None
    return errors


def _candidates(config: SinusoidConfig) -> list[SinusoidCell]:
    """The cells of every candidate, with the first seed and without test series."""
    return [
        cell
        for name, variant in config.candidates.items()
        for cell in _cells(config, f"candidate {name}", variant, config.seeds[:1], config.validation)
    ]


def _cells(
    config: SinusoidConfig, name: str, variant: Variant, seeds: Sequence[int], validation: float = 0.0
) -> list[SinusoidCell]:
    return [
        SinusoidCell(
            variant=name,
            seed=seed,
            regime=regime,
            model=variant.model,
            training=variant.training,
            train=config.train,
            test=config.test,
            validation=validation,
        )
        for seed in seeds[: variant.repeats or None]
        for regime in config.regimes
    ]


EXPERIMENT = Sinusoid()
