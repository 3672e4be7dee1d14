"""Classification of series of which a part was dropped (`tab:uea_drop_summary`, `app:uea-experiments`)."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

import msgspec
import optax

from logcde.datasets import Classification, deduplicated, load, split
from logcde.errors import ExperimentError
from logcde.experiments import uea_report
from logcde.experiments.abstract import AbstractCell, AbstractExperiment, Record, Tell
from logcde.experiments.claims import Conclusion
from logcde.experiments.recipes import Telling, keys_of
from logcde.experiments.uea_models import Given, LinearPath, NeuralPath, Spline, StateSpace, UeaModel
from logcde.streams import EachChannel, WholePoints, drop
from logcde.train import Checkpoints, Steps, fit, losses, score

Dropping: TypeAlias = Literal["points", "channels"]
DROPPINGS = {"points": WholePoints(), "channels": EachChannel()}
BLOCK = 4


class PathSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of the paper's table of Log-NCDE hyper-parameters, which linear CDEs share.

    `layers` and `width` are those of the vector field of the Log-NCDE, `solver_steps` how many steps of Heun's method
    it takes for each window. `divide` is for linear CDEs.
    """

    rate: float
    time: bool
    hidden: int
    depth: int
    step: int
    penalty: float
    layers: int
    width: int
    solver_steps: int = 1
    divide: float = 1.0


class SplineSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The hyper-parameters of the NCDE."""

    rate: float
    time: bool
    hidden: int
    layers: int
    width: int


class StateSpaceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A column of the paper's table of recurrent models."""

    rate: float
    time: bool
    hidden: int
    layers: int
    state: int
    blocks: int = 1
    convolution: int = 4
    expansion: int = 2


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The hyper-parameters of all models for one data set."""

    path: PathSettings
    ncde: SplineSettings
    s5: StateSpaceSettings
    lru: StateSpaceSettings
    s6: StateSpaceSettings
    mamba: StateSpaceSettings


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What linear CDEs do that the paper does not say, or that published runs did otherwise."""

    flow: Literal["exponential", "euler"] = "exponential"
    scaled_by: Literal["train", "all"] = "train"
    skip_first: bool = False


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of the grid: all of these models on all of these data sets at all shares of dropped observations.

    `repeats` is with how many of the seeds, all of them if 0. Validation series are looked at after `every` steps, and
    training ends when `patience` looks brought nothing better, or after `most` steps.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    drops: tuple[float, ...]
    dropping: Dropping = "points"
    repeats: int = 0
    every: int = 1000
    patience: int = 11
    most: int = 100_000


class UeaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parts of the grid, the first of which are run first, and the settings for each data set."""

    seeds: tuple[int, ...]
    grid: tuple[Part, ...]
    settings: dict[str, Settings]
    reading: Reading = Reading()

    def __post_init__(self) -> None:
        for part in self.grid:
            unknown = set(part.models) - set(uea_report.MODELS)
            if unknown:
                raise ValueError(f"models are some of {', '.join(uea_report.MODELS)}, not {', '.join(sorted(unknown))}")
            without = set(part.datasets) - set(self.settings)
            if without:
                raise ValueError(f"there are no settings for {', '.join(sorted(without))}")
            if not all(0 <= share < 1 for share in part.drops):
                raise ValueError("shares of dropped observations are at least 0 and less than 1")
        if not self.seeds or not self.grid:
            raise ValueError("there is at least one seed and one part of the grid")


class UeaCell(AbstractCell, frozen=True, kw_only=True):
    """One model on one data set at one share of dropped observations; `variant` is the name of the model."""

    dataset: str
    drop: float
    dropping: Dropping
    model: UeaModel
    rate: float
    penalty: float
    every: int
    patience: int
    most: int
    batch: int = 32

    @property
    def label(self) -> str:
        """Model, data set, share and seed."""
        of_each = " of each channel" if self.dropping == "channels" else ""
        return f"{self.variant}, {self.dataset}, {self.drop:.0%} dropped{of_each}, seed {self.seed}"


class UeaOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracies of the model that was best on validation series, and how it came about.

    `capped` says that training ended because of the limit on steps. `history` has the step and the validation accuracy
    of each look.
    """

    accuracy: float
    validation: float
    series: int
    tests: int
    steps: int
    best_step: int
    capped: bool
    parameters: int
    train_seconds: float
    history: list[tuple[int, float]]


class Uea(AbstractExperiment[UeaConfig, UeaCell, UeaOutcome]):
    """Fourth experiment of the paper."""

    name: ClassVar[str] = "uea"
    title: ClassVar[str] = "Classification under dropped observations: the UEA sets"
    config: ClassVar = UeaConfig
    cell: ClassVar = UeaCell
    outcome: ClassVar = UeaOutcome

    def cells(self, config: UeaConfig, done: Mapping[UeaCell, UeaOutcome]) -> Sequence[UeaCell]:
        """Part by part; what is in two parts is run as the first one says."""
        found: dict[tuple, UeaCell] = {}
        for part in config.grid:
            for seed in config.seeds[: part.repeats or None]:
                for dataset in part.datasets:
                    for share in part.drops:
                        for name in part.models:
                            place = (name, dataset, share, part.dropping, seed)
                            if place not in found:
                                found[place] = _cell(config, part, *place)
        return list(found.values())

    def run(self, cell: UeaCell, tell: Tell, scratch: Path) -> UeaOutcome:
        """Drop, split, train and test."""
        data = _loaded(cell.dataset)
        # Series are dropped from before they are split, so that a series loses the same whatever it is used for.
        left = drop(data.streams, cell.drop, DROPPINGS[cell.dropping], seed=(cell.seed, 1))
        given = Given(data, left, split(len(data), (cell.seed, 0)))
        inputs, basis = cell.model.inputs(given)
        for_model, for_training = keys_of(cell.seed)
        model = cell.model.model(basis, len(data.classes), for_model)
        parts = {
            name: (inputs[which], data.labels[which])
            for name, which in (
                ("train", given.split.train),
                ("validation", given.split.validation),
                ("test", given.split.test),
            )
        }
        del inputs
        result = fit(
            model,
            *parts["train"],
            loss=losses.cross_entropy,
            metrics=(losses.accuracy,),
            validation=parts["validation"],
            optimiser=optax.adam(cell.rate),
            clip=None,
            penalty=cell.penalty,
            batch=cell.batch,
            buckets=1,
            duration=Steps(cell.most),
            every=Steps(cell.every),
            patience=cell.patience,
            latest=True,
            checkpoints=Checkpoints(scratch),
            callbacks=(Telling(tell),),
            progress=False,
            key=for_training,
        )
        summary = result.summary
        return UeaOutcome(
            accuracy=score(result.model, *parts["test"], losses.accuracy),
            validation=summary.best_score or 0.0,
            series=len(data),
            tests=len(given.split.test),
            steps=summary.steps,
            best_step=summary.best_step,
            capped=not summary.stopped_early,
            parameters=summary.parameters,
            train_seconds=summary.seconds,
            history=[(look.step, round(look.validation["accuracy"] or 0.0, 5)) for look in result.history],
        )

    def conclude(self, config: UeaConfig, records: Mapping[UeaCell, Record], folder: Path) -> Conclusion:
        """Tables, the figure, and the splits as files for others."""
        cells = self.cells(config, {})
        series = {(cell.dataset, cell.seed): records[cell].outcome.series for cell in cells if cell in records}
        if not series:
            raise ExperimentError("Nothing of this grid was run, so there is nothing to conclude.")
        for (dataset, seed), count in series.items():
            split(count, (seed, 0)).write(folder / "splits" / f"{dataset}-{seed}.json")
        return uea_report.conclude(cells, records, folder)


@lru_cache(maxsize=1)
def _loaded(name: str) -> Classification:
    """Cells of one data set follow each other, mostly."""
    return deduplicated(load(name))


def _cell(
    config: UeaConfig, part: Part, name: str, dataset: str, share: float, dropping: Dropping, seed: int
) -> UeaCell:
    settings = config.settings[dataset]
    model, rate, penalty = _model(settings, config.reading, name)
    return UeaCell(
        variant=name,
        seed=seed,
        dataset=dataset,
        drop=share,
        dropping=dropping,
        model=model,
        rate=rate,
        penalty=penalty,
        every=part.every,
        patience=part.patience,
        most=part.most,
    )


def _model(settings: Settings, reading: Reading, name: str) -> tuple[UeaModel, float, float]:
    """A model by its name, its learning rate and its penalty."""
    path = settings.path
    if name in ("d_slice", "d_slice_euler", "bd_slice", "lncde"):
        diagonal = name.startswith("d_slice")
        model = LinearPath(
            hidden=path.hidden,
            block=1 if diagonal else BLOCK if name == "bd_slice" else path.hidden,
            depth=1 if diagonal else path.depth,
            step=path.step,
            time=path.time,
            divide=path.divide,
            flow="euler" if name == "d_slice_euler" else reading.flow,
            scaled_by=reading.scaled_by,
            skip_first=reading.skip_first,
        )
        return model, path.rate, path.penalty
    if name == "log_ncde":
        fields = {field: getattr(path, field) for field in NeuralPath.__struct_fields__}
        return NeuralPath(**fields), path.rate, path.penalty
    own = getattr(settings, name)
    fields = {field: getattr(own, field) for field in own.__struct_fields__ if field != "rate"}
    model = Spline(**fields) if name == "ncde" else msgspec.convert({"unit": name, **fields}, StateSpace)
    return model, own.rate, 0.0
