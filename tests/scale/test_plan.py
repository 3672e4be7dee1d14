"""A plan is a pure function of tables of whole series, the same wherever it runs."""

import pickle

import numpy as np
import polars
import pyarrow
import pytest

import logcde as lc
from logcde.errors import ModelError, TableError
from logcde.estimators import LogCDEClassifier
from logcde.estimators.data import last_times, with_horizon
from logcde.scale import Layout, plan
from tests.cli.training_tables import vitals
from tests.scale.folders import CHANNELS, by_series, by_time, with_dense_series

LAYOUT = Layout.long(*CHANNELS)


def whole(frame, embedding, partition):
    """What the library makes of each series by itself, but for the horizon of all."""
    streams = lc.Streams.from_frame(frame, *CHANNELS)
    logsigs = [embedding(streams[number : number + 1], partition) for number in range(len(streams))]
    return streams.ids.tolist(), np.concatenate([one.values[0, : one.lengths[0]] for one in logsigs])


@pytest.mark.parametrize("depth", [2, 3])
@pytest.mark.parametrize("cut", [by_series, by_time])
def test_any_groups_of_series_give_the_bits_of_each_series(tmp_path, depth, cut):
    frame = with_dense_series()
    embedding, partition = lc.Embedding(depth), lc.Partition.every(5.0)
    made = plan(cut(frame, tmp_path / "in"), LAYOUT, embedding, partition)
    ids, values = whole(frame, embedding, partition)
    for size in (1, 7, len(ids)):
        groups = [ids[first : first + size] for first in range(0, len(ids), size)]
        tables = [made(frame.filter(polars.col("id").is_in(group)).to_arrow()) for group in groups]
        table = polars.from_arrow(pyarrow.concat_tables(tables))
        np.testing.assert_array_equal(table[:, 3:].to_numpy(), values)
        assert table["id"].unique(maintain_order=True).to_list() == ids


def test_a_plan_can_be_sent_and_gives_the_same_bits(tmp_path):
    frame = with_dense_series()
    made = plan(by_series(frame, tmp_path / "in"), LAYOUT, lc.Embedding(), lc.Partition.uniform(3))
    sent = pickle.loads(pickle.dumps(made))
    assert sent(frame.to_arrow()).equals(made(frame.to_arrow()))
    (batch,) = frame.to_arrow().combine_chunks().to_batches()
    assert sent(batch).equals(made(frame.to_arrow()))
    assert sent(frame.to_arrow()[:0]).schema == made.columns == made(frame.to_arrow()).schema
    further = frame.with_columns(polars.col("name").cast(polars.Categorical), unused=1).to_arrow()
    assert made(further).equals(made(frame.to_arrow()))


def test_stamps_and_horizon_are_those_of_all_files(tmp_path):
    for name, day in (("a", 1), ("b", 4)):
        rows = "".join(f"{name},2024-01-0{day + more},x,{more}\n" for more in (0, 1))
        (tmp_path / f"{name}.csv").write_text(f"id,t,name,x\n{rows}")
    made = plan(f"{tmp_path}/*.csv", LAYOUT, lc.Embedding(1))
    table = made(pyarrow.table({"id": ["b"], "t": ["2024-01-04"], "name": ["x"], "x": [2.0]}))
    assert table.select(["start", "stop", "time"]).to_pylist()[0]["time"] == 96.0


def test_predictions_of_an_estimator(tmp_path):
    frame = vitals().drop("extra")
    layout = Layout.wide(("pulse", "temp"), "id", "t")
    streams = lc.Streams.from_frame(
        frame.unpivot(["pulse", "temp"], index=["id", "t"]).drop_nulls().sort("id", "t"), "id", "t", "variable", "value"
    )
    labels = frame.group_by("id", maintain_order=True).agg(polars.col("state").first())
    known = dict(labels.rows())
    estimator = LogCDEClassifier().fit(streams, [known[one] for one in streams.ids.tolist()])
    made = plan(by_series(frame, tmp_path / "in"), layout, model=estimator)
    table = pickle.loads(pickle.dumps(made))(frame.to_arrow())
    assert table.schema == made.columns
    order = [table["id"].to_pylist().index(one) for one in streams.ids.tolist()]
    found = np.stack([table[f"probability_{one}"].to_numpy() for one in estimator.classes_], axis=1)[order]
    ended = with_horizon(streams, last_times(streams) + estimator.gap_)
    np.testing.assert_allclose(found, estimator.predict_proba(ended), rtol=1e-5)


def test_what_is_refused(tmp_path):
    folder = by_time(with_dense_series(), tmp_path / "in")
    with pytest.raises(ModelError, match="Give either an embedding or a model"):
        plan(folder, LAYOUT)
    with pytest.raises(TableError, match="but every series was said to be in one file"):
        plan(folder, LAYOUT, lc.Embedding(), whole=True)
    with pytest.raises(TableError, match="No file matches"):
        plan(f"{folder}/*.csv", LAYOUT, lc.Embedding())
