"""A linear system driven by Brownian rough paths, learnt with and without areas (`sec:bm_results`)."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import equinox as eqx
import msgspec
import numpy as np

from experiments.brownian import report
from experiments.brownian.cells import LEVELS, BrownianCell, BrownianConfig, BrownianOutcome, Recipe
from experiments.runner.abstract import AbstractExperiment, Conclusion, Record, Tell
from experiments.runner.recipes import Curve, SliceModel, best_of, keys_of, validation_error
from logcde.algebra import Basis
from logcde.datasets import BrownianPaths, aligned_cuts, brownian, oracle
from logcde.embedding import Embedding, LogSignatures
from logcde.errors import ExperimentError
from logcde.models import Inputs, SequenceModel, predict
from logcde.train import score

EXAMPLES = 3
REDUNDANT = ("W3", "W4")


class Brownian(AbstractExperiment[BrownianConfig, BrownianCell, BrownianOutcome]):
    """The third experiment of the paper."""

    name: ClassVar[str] = "brownian"
    title: ClassVar[str] = "A linear system driven by Brownian motion: what areas are worth"
    config: ClassVar = BrownianConfig
    cell: ClassVar = BrownianCell
    outcome: ClassVar = BrownianOutcome

    def cells(self, config: BrownianConfig, done: Mapping[BrownianCell, BrownianOutcome]) -> Sequence[BrownianCell]:
        """Variants and candidates; for each level whose candidates are all done, also the best one with all seeds."""
        variants = [
            _cells(config, name, recipe, level, config.seeds, config.intervals)
            for name, recipe in config.variants.items()
            for level in recipe.levels
        ]
        candidates = [_candidates(config, level) for level in LEVELS]
        ours = [
            _cells(config, "ours", config.candidates[name], level, config.seeds, config.intervals)
            for level, name in _chosen(config, done).items()
        ]
        # Cells with the same paths come after each other, so that these are generated once.
        return sorted(itertools.chain(*variants, *candidates, *ours), key=lambda cell: config.seeds.index(cell.seed))

    def can_run(self, cell: BrownianCell) -> bool:
        """Always: data are generated."""
        return True

    def run(self, cell: BrownianCell, tell: Tell, scratch: Path) -> BrownianOutcome:
        """Train and test one model."""
        cuts = aligned_cuts(cell.intervals, (cell.seed, cell.intervals), cell.steps)
        data = _Part.of(cell, cell.train, 0, cuts)
        if cell.validation:
            kept = cell.train - round(cell.train * cell.validation)
            data, held_out = data[:kept], data[kept:]
        else:
            held_out = _Part.of(cell, cell.test, 1, cuts)
        for_model, for_training = keys_of(cell.seed)
        model = cell.model.model(data.logsigs.basis, data.targets.shape[-1], for_model)
        look_at = (Inputs.of(held_out.logsigs), held_out.targets)
        result = cell.training(model, Inputs.of(data.logsigs), data.targets, look_at, for_training, tell)
        few = predict(result.last, look_at[0][:EXAMPLES])
        assert isinstance(result.last, SequenceModel)
        letters = result.last.dynamics.field.letters()  # pyright: ignore[reportAttributeAccessIssue]
        norms = np.linalg.norm(np.asarray(letters, float), axis=1)
        return BrownianOutcome(
            mse=score(result.last, *look_at),
            oracle=held_out.oracle,
            mse_without_redundant=score(result.last, Inputs.of(without_redundant(held_out.logsigs)), look_at[1]),
            norms=dict(zip(data.logsigs.basis.letters, norms.round(6).tolist(), strict=True)),
            curve=Curve.of(result),
            parameters=result.summary.parameters,
            train_seconds=result.summary.seconds,
            predictions=[] if cell.validation else np.round(np.asarray(few, float), 5).tolist(),
        )

    def conclude(self, config: BrownianConfig, records: Mapping[BrownianCell, Record], folder: Path) -> Conclusion:
        """Write table and figures and judge the claims."""
        done = {cell: record.outcome for cell, record in records.items()}
        runs = {
            (cell.variant, cell.level, cell.intervals, cell.seed): records[cell]
            for cell in self.cells(config, done)
            if cell in records and not cell.validation
        }
        if not any(variant == "printed" for variant, *_ in runs):
            raise ExperimentError("No cell of the variant 'printed' is finished, so there is no conclusion.")
        searched = {level: validation_errors(config, done, level) for level in LEVELS}
        seconds = sum(records[cell].seconds for cell in self.cells(config, done) if cell in records)
        return report.conclude(config, runs, searched, _chosen(config, done), seconds, folder)


def validation_errors(
    config: BrownianConfig, done: Mapping[BrownianCell, BrownianOutcome], level: int
) -> dict[str, float | None]:
    """Validation error of each candidate over the numbers of intervals in `search`; None if some cells are missing."""
    errors: dict[str, float | None] = {}
    for name, recipe in config.candidates.items():
        if level in recipe.levels:
            mine = [cell for cell in _candidates(config, level) if cell.variant == f"candidate {name}"]
            known = all(cell in done for cell in mine)
            errors[name] = validation_error(done[cell].mse for cell in mine) if known else None
    return errors


def _chosen(config: BrownianConfig, done: Mapping[BrownianCell, BrownianOutcome]) -> dict[int, str]:
    """The best candidate for each level whose candidates are all done."""
    best = {level: best_of(validation_errors(config, done, level)) for level in LEVELS}
    return {level: name for level, name in best.items() if name is not None}


class _Part(eqx.Module):
    """Log-signatures, targets, and the predictions of the true system from the same log-signatures."""

    logsigs: LogSignatures
    targets: np.ndarray
    best: np.ndarray

    @classmethod
    def of(cls, cell: BrownianCell, series: int, part: int, cuts: np.ndarray) -> "_Part":
        data = _paths(series, (cell.seed, part), cell.steps).dataset(cuts)
        logsigs = Embedding(depth=cell.level, counts=False, time=True)(data.streams, data.partition)
        best = oracle(logsigs)
        return cls(free_letters(logsigs) if cell.reading == "free" else logsigs, data.targets, best)

    def __getitem__(self, series: slice) -> "_Part":
        return _Part(self.logsigs[series], self.targets[series], self.best[series])

    @property
    def oracle(self) -> float:
        return float(np.mean((self.best - self.targets) ** 2))


@functools.lru_cache(maxsize=2)
def _paths(series: int, seed: tuple[int, int], steps: int) -> BrownianPaths:
    return brownian(series, seed, steps)


def free_letters(logsigs: LogSignatures) -> LogSignatures:
    """Make increments, areas of the Brownian letters and time separate letters; areas with time are dropped."""
    basis = logsigs.basis
    kept = [place for place, label in enumerate(basis.labels) if label == "time" or "time" not in label]
    letters = Basis(tuple(basis.labels[place] for place in kept), 1)
    return LogSignatures(logsigs.values[..., kept], logsigs.lengths, letters, logsigs.initial)


def without_redundant(logsigs: LogSignatures) -> LogSignatures:
    """Set all coordinates to zero that involve channels which do not drive the system."""
    used = np.array([not any(name in label for name in REDUNDANT) for label in logsigs.basis.labels])
    return eqx.tree_at(lambda part: part.values, logsigs, np.asarray(logsigs.values) * used)


def _candidates(config: BrownianConfig, level: int) -> list[BrownianCell]:
    """The cells of every candidate, with the first seed and without test paths."""
    return [
        cell
        for name, recipe in config.candidates.items()
        if level in recipe.levels
        for cell in _cells(
            config, f"candidate {name}", recipe, level, config.seeds[:1], config.search, config.validation
        )
    ]


def _cells(
    config: BrownianConfig,
    name: str,
    recipe: Recipe,
    level: int,
    seeds: Sequence[int],
    intervals: Sequence[int],
    validation: float = 0.0,
) -> list[BrownianCell]:
    assert isinstance(recipe.model, SliceModel)
    return [
        BrownianCell(
            variant=name,
            seed=seed,
            level=level,
            intervals=count,
            model=msgspec.structs.replace(recipe.model, depth=level),
            training=recipe.training,
            reading=recipe.reading,
            train=config.train,
            test=config.test,
            steps=config.steps,
            validation=validation,
        )
        for seed in seeds[: recipe.repeats or None]
        for count in intervals
    ]


EXPERIMENT = Brownian()
