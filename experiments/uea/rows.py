"""Results of the UEA experiment over seeds, compared with the paper: accuracies, averages, ranks and claims."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from experiments.runner.abstract import Claim, Record
from experiments.runner.tables import Spread
from experiments.uea.cells import UeaCell
from experiments.uea.settings import MODELS, printed

PAPER_SETS = (
    "EigenWorms",
    "EthanolConcentration",
    "Heartbeat",
    "MotorImagery",
    "SelfRegulationSCP1",
    "SelfRegulationSCP2",
)
PAPER_SEEDS = 5
PERCENT = 0.01
SPARSEST = 0.95
BEST = {"log_ncde": (0.0, 0.3, 0.7), "bd_slice": (SPARSEST,)}
"""The models with the paper's best mean accuracies, and the shares at which they have them."""
STEADY = 1.5
"""By how many points the paper's BD-SLiCE loses from all observations to the fewest."""
FEWEST = 3
"""Smallest number of models of which one is called the best."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one data set at one share of dropped observations, over seeds; accuracies in percent.

    Attributes:
        accuracies: One for each of the `seeds`.
        samples: Difference from the paper's mean in test samples.
        errors: Difference from the paper's mean in standard errors, if only the draw of test series differed.
        constant: Accuracy of always predicting the most frequent class of the training series.
        capped: Number of runs that the limit on steps ended.
    """

    dataset: str
    model: str
    drop: float
    dropping: str
    seeds: list[int]
    accuracies: list[float]
    mean: float
    std: float
    paper_mean: float | None = None
    paper_std: float | None = None
    tests: int
    samples: float | None = None
    errors: float | None = None
    constant: float | None = None
    steps: float
    most: int
    capped: int
    train_seconds: float
    parameters: int


def rows_of(cells: Sequence[UeaCell], records: Mapping[UeaCell, Record]) -> list[Row]:
    """Summarise finished cells over seeds, in the order of the paper's tables."""
    found: dict[tuple[str, str, float, str], list[UeaCell]] = {}
    for cell in cells:
        if cell in records:
            found.setdefault((cell.dropping, cell.dataset, cell.drop, cell.variant), []).append(cell)
    datasets = list(dict.fromkeys([*PAPER_SETS, *(cell.dataset for cell in cells)]))
    models = list(MODELS)
    order = sorted(found, key=lambda key: (key[0] != "points", datasets.index(key[1]), key[2], models.index(key[3])))
    rows = []
    for key in order:
        dropping, dataset, drop, model = key
        mine = found[key]
        outcomes = [records[cell].outcome for cell in mine]
        accuracies = [outcome.accuracy / PERCENT for outcome in outcomes]
        spread = Spread.of(accuracies)
        paper = printed().get(str(drop), {}).get(model, {}).get(dataset) if dropping == "points" else None
        tests = outcomes[0].tests
        constants = [outcome.constant / PERCENT for outcome in outcomes if outcome.constant is not None]
        rows.append(
            Row(
                dataset=dataset,
                model=model,
                drop=drop,
                dropping=dropping,
                seeds=[cell.seed for cell in mine],
                accuracies=accuracies,
                mean=spread.mean,
                std=spread.std,
                paper_mean=None if paper is None else paper[0],
                paper_std=None if paper is None else paper[1],
                tests=tests,
                samples=None if paper is None else (spread.mean - paper[0]) * PERCENT * tests,
                errors=None if paper is None else errors_of(spread.mean, len(mine), paper[0], PAPER_SEEDS, tests),
                constant=float(np.mean(constants)) if len(constants) == len(outcomes) else None,
                steps=float(np.mean([outcome.steps for outcome in outcomes])),
                most=mine[0].training.most,
                capped=sum(outcome.capped for outcome in outcomes),
                train_seconds=float(np.mean([outcome.train_seconds for outcome in outcomes])),
                parameters=outcomes[0].parameters,
            )
        )
    return rows


def errors_of(mean: float, seeds: int, other: float, other_seeds: int, tests: int) -> float:
    """The difference of two accuracies in percent, in standard errors of drawing so many test series for each seed.

    Seeds also differ by what is trained on and from where, so this is the least that chance does.

    >>> round(errors_of(60.0, 5, 50.0, 5, tests=50), 2)
    2.25
    """
    common = (seeds * mean + other_seeds * other) / (seeds + other_seeds) * PERCENT
    error = math.sqrt(common * (1 - common) / tests * (1 / seeds + 1 / other_seeds))
    return (mean - other) * PERCENT / error if error else 0.0


def constant_of(rows: Sequence[Row], dataset: str) -> float | None:
    """Accuracy of a constant prediction, from the model with most seeds on the data set."""
    known = [row for row in rows if row.dataset == dataset and row.constant is not None]
    return max(known, key=lambda row: len(row.seeds)).constant if known else None


class Average(msgspec.Struct, frozen=True, kw_only=True):
    """Several models on the same data sets at one share: mean accuracy and mean rank of each, and of the paper's.

    Ours are over the seeds that all of the models were run with on a data set; `seeds` is how many these are.
    """

    drop: float
    datasets: list[str]
    seeds: list[int]
    models: list[str]
    accuracy: list[float]
    rank: list[float]
    paper_accuracy: list[float]
    paper_rank: list[float]

    @property
    def where(self) -> str:
        """The data sets, and how many seeds there are of each."""
        if len(set(self.seeds)) == 1:
            return f"{', '.join(self.datasets)} ({_seeds(self.seeds[0])})"
        return ", ".join(
            f"{dataset} ({_seeds(count)})" for dataset, count in zip(self.datasets, self.seeds, strict=True)
        )


def averages(rows: Sequence[Row]) -> list[Average]:
    """For every share, over each group of the paper's data sets that two of its models or more have in common.

    Ranks are taken on accuracies that are not rounded, and models with the same accuracy share the mean of their ranks.
    Models that have no seed in common on one of the data sets are not compared.
    """
    found = []
    for drop in sorted({row.drop for row in rows}):
        here = {(row.model, row.dataset): row for row in rows if row.drop == drop and row.paper_mean is not None}
        by_model: dict[str, frozenset[str]] = {}
        for model, dataset in here:
            by_model[model] = by_model.get(model, frozenset()) | {dataset}
        for group in sorted(set(by_model.values()), key=lambda group: (-len(group), sorted(group))):
            models = [model for model in MODELS if group <= by_model.get(model, frozenset())]
            datasets = [dataset for dataset in PAPER_SETS if dataset in group]
            common = [_common([here[model, dataset] for model in models]) for dataset in datasets]
            if len(models) > 1 and all(common):
                found.append(_average(drop, models, datasets, common, here))
    return found


def _common(rows: Sequence[Row]) -> set[int]:
    return set.intersection(*(set(row.seeds) for row in rows))


def _mean(row: Row, seeds: set[int]) -> float:
    return float(np.mean([accuracy for seed, accuracy in zip(row.seeds, row.accuracies, strict=True) if seed in seeds]))


def _average(
    drop: float,
    models: list[str],
    datasets: list[str],
    common: Sequence[set[int]],
    here: Mapping[tuple[str, str], Row],
) -> Average:
    table = [[here[model, dataset] for dataset in datasets] for model in models]
    ours = np.array([[_mean(row, seeds) for row, seeds in zip(line, common, strict=True)] for line in table])
    paper = np.array([[row.paper_mean for row in line] for line in table])
    return Average(
        drop=drop,
        datasets=datasets,
        seeds=[len(seeds) for seeds in common],
        models=models,
        accuracy=ours.mean(axis=1).tolist(),
        rank=np.mean([ranks_of(column) for column in ours.T], axis=0).tolist(),
        paper_accuracy=paper.mean(axis=1).tolist(),
        paper_rank=np.mean([ranks_of(column) for column in paper.T], axis=0).tolist(),
    )


def ranks_of(accuracies: np.ndarray) -> np.ndarray:
    """Ranks from 1 for the greatest; equal ones share the mean of theirs.

    >>> ranks_of(np.array([80.0, 90.0, 80.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    better = (accuracies[None, :] > accuracies[:, None]).sum(axis=1)
    equal = (accuracies[None, :] == accuracies[:, None]).sum(axis=1)
    return better + (equal + 1) / 2


def judge(rows: Sequence[Row], blocks: Sequence[Average]) -> tuple[Claim, ...]:
    """Judge the claims of the paper about its tables; for each share, on the block with most numbers."""
    largest: dict[float, Average] = {}
    for block in sorted(blocks, key=lambda block: len(block.models) * len(block.datasets)):
        if len(block.models) >= FEWEST:
            largest[block.drop] = block
    claims = [
        _best(block, model)
        for model, shares in BEST.items()
        for share, block in sorted(largest.items())
        if share in shares and model in block.models
    ]
    claims += [_first(block, "bd_slice") for _, block in sorted(largest.items()) if "bd_slice" in block.models]
    return (*claims, *_steady(rows, "bd_slice"), *_alike(rows))


def _best(block: Average, model: str) -> Claim:
    text = f"{MODELS[model]} has the best mean accuracy with {block.drop:.0%} dropped"
    ours, paper = (_listed(block.models, values, down=True) for values in (block.accuracy, block.paper_accuracy))
    mine = block.accuracy[block.models.index(model)]
    return Claim(text, mine >= max(block.accuracy), f"over {block.where}: {ours}; the paper's there: {paper}")


def _first(block: Average, model: str) -> Claim:
    text = f"{MODELS[model]} has the best mean rank, or shares it, with {block.drop:.0%} dropped"
    ours, paper = (_listed(block.models, ranks, down=False) for ranks in (block.rank, block.paper_rank))
    mine = block.rank[block.models.index(model)]
    return Claim(text, mine <= min(block.rank), f"over {block.where}: {ours}; the paper's there: {paper}")


def _steady(rows: Sequence[Row], model: str) -> list[Claim]:
    """Over the data sets that the model was run on with nothing dropped and with most dropped."""
    mine = {(row.drop, row.dataset): row for row in rows if row.model == model and row.paper_mean is not None}
    both = [dataset for dataset in PAPER_SETS if (0.0, dataset) in mine and (SPARSEST, dataset) in mine]
    if not both:
        return []
    ours, paper = (
        [float(np.mean([getattr(mine[drop, dataset], field) for dataset in both])) for drop in (0.0, SPARSEST)]
        for field in ("mean", "paper_mean")
    )
    text = f"{MODELS[model]} loses no more than {STEADY} points of mean accuracy from nothing to {SPARSEST:.0%} dropped"
    evidence = (
        f"over {', '.join(both)}: {ours[0]:.1f} to {ours[1]:.1f}; the paper's there: {paper[0]:.1f} to {paper[1]:.1f}"
    )
    return [Claim(text, ours[0] - ours[1] <= STEADY, evidence)]


def _alike(rows: Sequence[Row]) -> list[Claim]:
    errors = np.array([row.errors for row in rows if row.errors is not None])
    if not len(errors):
        return []
    text = "Nine of ten accuracies are within two standard errors of the paper's"
    near = int((np.abs(errors) <= 2).sum())
    evidence = (
        f"{near} of {len(errors)}; {int((errors > 0).sum())} are above the paper's; "
        f"the mean difference is {errors.mean():+.2f} standard errors"
    )
    return [Claim(text, near >= 0.9 * len(errors), evidence)]


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _listed(models: Sequence[str], values: Sequence[float], *, down: bool) -> str:
    """List models from best to worst; `down`: larger values are better."""
    order = sorted(zip(models, values, strict=True), key=lambda pair: pair[1], reverse=down)
    return ", ".join(f"{MODELS[model]} {value:.1f}" for model, value in order)
