from pathlib import Path

import numpy as np
import pytest

from experiments.brownian.cells import BrownianConfig, Recipe
from experiments.brownian.experiment import EXPERIMENT, free_letters, without_redundant
from experiments.brownian.report import Row, judge
from experiments.runner.abstract import Record
from experiments.runner.recipes import SliceModel, Training
from experiments.runner.tables import Spread
from logcde import Embedding
from logcde.datasets import brownian

BROWNIAN = EXPERIMENT


def recipe(**options):
    return Recipe(model=SliceModel(hidden=4, block=2), training=Training(epochs=2, batch=8), **options)


CONFIG = BrownianConfig(
    seeds=(0,),
    train=16,
    test=8,
    steps=32,
    intervals=(2,),
    search=(2,),
    variants={"printed": recipe(), "free matrices": recipe(reading="free", levels=(2,), note="No brackets.")},
    candidates={"ours": recipe()},
)


@pytest.fixture(scope="module")
def records():
    """The whole grid in this process."""
    found: dict = {}
    while missing := [cell for cell in BROWNIAN.cells(CONFIG, _outcomes(found)) if cell not in found]:
        found |= {cell: Record(cell, BROWNIAN.run(cell, lambda part: None, Path()), 1.0, {}) for cell in missing}
    return found


def _outcomes(records):
    return {cell: record.outcome for cell, record in records.items()}


def test_grid_ends_with_our_recipe_at_both_levels(records):
    variants = {(cell.variant, cell.level, cell.intervals) for cell in records}
    assert {("ours", level, 2) for level in (1, 2)} <= variants
    assert ("free matrices", 1, 2) not in variants
    for cell, record in records.items():
        letters = 11 if cell.reading == "free" else 5
        assert len(record.outcome.norms) == letters
        assert record.outcome.oracle < 1e-3
        assert (record.outcome.predictions == []) == (cell.validation > 0)


def test_conclude_has_every_column(records, tmp_path):
    conclusion = BROWNIAN.conclude(CONFIG, records, tmp_path)
    columns = {"m", "level1", "level2", "level1_printed", "level2_printed", "oracle1", "oracle2", "paper1", "paper2"}
    assert [set(row) for row in conclusion.summary["rows"]] == [columns]
    assert conclusion.summary["rows"][0]["paper1"] == 6.97e-6
    assert set(conclusion.summary["variants"]) == {"free matrices"}
    assert {path.name for path in tmp_path.iterdir()} == {"errors.png", "examples_level1.png", "examples_level2.png"}
    assert len(conclusion.claims) == 5


def rows(level1=1.1, level2=1.0, gain=40.0):
    best = {2: 5e-7, 64: 1e-9}
    return [
        Row(
            m=m,
            level1=Spread(level1 * 1e-5 * 2 / m * gain / 40, 0.0),
            level2=Spread(level2 * max(best[m], 1e-7), 0.0),
            oracle1=Spread(1e-5 * 2 / m * gain / 40, 0.0),
            oracle2=Spread(best[m], 0.0),
            paper2={2: 0.29e-6, 64: 0.11e-6}[m],
        )
        for m in (2, 64)
    ]


def test_judge_fails_each_claim():
    fine = (0.2, 0.01)
    assert [claim.held for claim in judge(rows(), fine)] == [True] * 5
    assert not judge(rows(level1=1.6), fine)[0].held
    assert not judge(rows(level2=2.1), fine)[1].held
    assert not judge(rows(gain=20.0), fine)[2].held
    assert not judge(rows(level2=1.2), fine)[3].held
    assert "m = 64: 1.09" in judge(rows(level2=1.2), fine)[3].evidence  # at m = 2 the truth itself is worse
    assert not judge(rows(), (0.2, 0.11))[4].held


def test_free_letters_and_without_redundant():
    data = brownian(series=2, seed=0, steps=8).dataset([0, 3, 8])
    logsigs = Embedding(depth=2, counts=False)(data.streams, data.partition)
    free = free_letters(logsigs)
    assert free.basis.width == free.basis.dimension == 11
    kept = [logsigs.basis.labels.index(letter) for letter in free.basis.letters]
    np.testing.assert_array_equal(free.values, logsigs.values[..., kept])
    assert not any("time" in letter and letter != "time" for letter in free.basis.letters)
    zeroed = without_redundant(logsigs)
    moved = np.abs(np.asarray(zeroed.values)).max(axis=(0, 1)) > 0
    names = [label for label, moves in zip(logsigs.basis.labels, moved, strict=True) if moves]
    assert names == ["W1", "W2", "time", "[W1, W2]", "[W1, time]", "[W2, time]"]
