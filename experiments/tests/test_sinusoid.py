import pytest

from experiments.runner.tables import Spread
from experiments.sinusoid.report import judge
from logcde.datasets import REGIMES

ROWS = {
    "sync_regular": (0.2, 1.6, 1.7, 7.6),
    "sync_irregular": (0.7, 1.3, 1.4, 6.0),
    "async_irregular": (0.6, 1.3, 1.2, 5.6),
    "async_sparse": (3.1, 3.2, 3.1, 3.1),
}


def table(**changed):
    rows = {**ROWS, **changed}
    return {
        row: {test: Spread(value * 1e-2, 1e-4) for test, value in zip(REGIMES, values, strict=True)}
        for row, values in rows.items()
    }


def test_judge_holds_for_numbers_like_the_papers():
    assert [claim.held for claim in judge(table())] == [True, True, True, True]


@pytest.mark.parametrize(
    ("number", "changed", "said"),
    [
        (0, {"sync_regular": (0.2, 1.1, 1.7, 7.6)}, "on sync_irregular, trained on sync_regular 1.1"),
        (1, {"sync_regular": (0.2, 1.6, 1.7, 5.0)}, "sync_regular 5"),
        (2, {"async_sparse": (0.1, 3.2, 3.1, 3.1)}, "async_sparse 32"),
        (3, {"sync_irregular": (1.2, 1.3, 1.4, 6.0)}, "sync_regular 2.00"),
    ],
)
def test_judge_fails_each_claim_with_evidence(number, changed, said):
    claims = judge(table(**changed))
    assert not claims[number].held
    assert said in claims[number].evidence


def test_judge_allows_for_noise():
    noisy = table(sync_regular=(0.2, 1.29, 1.7, 7.6))
    assert judge(noisy)[0].held


def test_judge_of_a_part_of_the_table():
    assert len(judge({"sync_regular": table()["sync_regular"]})) == 2
