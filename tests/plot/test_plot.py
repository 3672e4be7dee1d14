"""Contents of figures of streams, paths and training runs."""

import numpy as np
import pytest

from logcde import Embedding, Partition, Streams, decode, plot, realise
from logcde.errors import StreamError
from logcde.train import Evaluation


def streams():
    nan = np.nan
    values = [[[1.0, nan], [2.0, 3.0], [nan, 4.0]], [[5.0, nan], [6.0, nan]]]
    return Streams.from_arrays([[0.0, 1.0, 4.0], [0.5, 2.5]], values, ("pulse", "temp"), ids=["p", "q"])


def axes():
    return plot.figure_of(4, 3).subplots()


def test_series_raster_of_all_channels():
    drawn = plot.series_raster(axes(), streams())
    pulse, temp = (ticks.get_segments() for ticks in drawn.collections[:2])
    assert [round(float(tick[0, 0]), 9) for tick in pulse] == [0.0, 1.0, 0.5, 2.5]
    assert [int(tick[0, 1]) for tick in pulse] == [0, 0, 1, 1]
    assert len(temp) == 2
    assert max(tick[1, 1] for tick in pulse[:2]) <= min(tick[0, 1] for tick in temp)
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["pulse", "temp"]


def test_series_raster_of_one_channel_and_of_many_series():
    assert plot.series_raster(axes(), streams(), ["temp"]).get_legend() is None
    with pytest.raises(StreamError, match="no channel 'tmp'"):
        plot.series_raster(axes(), streams(), ["tmp"])
    many = plot.series_raster(axes(), streams()[np.zeros(100, np.int64)])
    assert len(many.get_yticks()) <= 40
    assert plot.series_raster(axes(), streams()[:0]).get_ylim() == (1, 0)


def test_realised_path_in_two_coordinates():
    path = realise(streams(), Embedding())[0]
    drawn = plot.realised_path(axes(), path, ("pulse", "#temp"))
    line = drawn.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), path.positions[:, 0])
    np.testing.assert_array_equal(line.get_ydata(), path.positions[:, 3])
    with pytest.raises(StreamError, match="Choose two of 'pulse', 'temp', '#pulse', '#temp', 'time'"):
        plot.realised_path(axes(), path, ("pulse", "nothing"))


def test_history_marks_best_evaluation():
    evaluations = [
        Evaluation(10, 1.0, 0.1, 0.9, {"loss": 1.0, "accuracy": 0.5}, True),
        Evaluation(20, 2.0, 0.2, 0.5, {"loss": 0.7, "accuracy": 0.8}, True),
        Evaluation(30, 3.0, 0.3, 0.4, {"loss": 0.8, "accuracy": None}, False),
    ]
    drawn = plot.history(axes(), evaluations)
    assert drawn.get_yscale() == "log"
    assert drawn.lines[2].get_xdata() == [20]
    drawn = plot.history(axes(), evaluations, "accuracy")
    assert drawn.get_yscale() == "linear"
    np.testing.assert_array_equal(drawn.lines[1].get_ydata(), [0.5, 0.8, np.nan])
    assert len(plot.history(axes(), [Evaluation(1, 1.0, 0.1, 0.9, {}, False)]).lines) == 1


def test_failed_save_keeps_old_file(tmp_path):
    class Broken:
        def savefig(self, *_, **__):
            raise OSError("no space left")

    target = tmp_path / "figure.png"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="no space left"):
        plot.save(Broken(), target)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"old"


def test_overview_has_lane_of_unobserved_channel():
    streams = Streams.from_arrays([[0.5, 1.0]], [[[1.0, np.nan], [2.0, np.nan]]], channels=("observed", "unobserved"))
    embedding, partition = Embedding(), Partition.uniform(2)
    cuts, paths = partition.cuts(streams), realise(streams, embedding)
    figure = plot.overview(streams, cuts, embedding(streams, partition), paths[0], decode(paths))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["unobserved", "observed"]


def test_figure_without_an_ending_is_an_image(tmp_path):
    plot.save(plot.figure_of(1, 1), tmp_path / "figure")
    assert [file.name for file in tmp_path.iterdir()] == ["figure"]
    assert (tmp_path / "figure").read_bytes().startswith(b"\x89PNG")
