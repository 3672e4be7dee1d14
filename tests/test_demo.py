"""The first command of the README, from generated streams to the figure."""

import numpy as np
import pytest

from logcde import Embedding, Partition, Streams, decode, demo, plot, realise


def test_the_demo_does_its_job_and_draws_it(tmp_path, monkeypatch, capsys):
    target = tmp_path / "new folder" / "demo.png"
    monkeypatch.setattr("sys.argv", ["demo", "--series", "12", "--out", str(target)])
    demo.main()
    said = capsys.readouterr().out
    assert "12 series" in said
    assert "equal to what went in" in said
    assert "NOT" not in said
    assert target.read_bytes().startswith(b"\x89PNG")
    assert list(target.parent.iterdir()) == [target]  # nothing unfinished is left behind


def test_a_failed_figure_leaves_the_old_one_alone(tmp_path):
    class Broken:
        def savefig(self, *_, **__):
            raise OSError("no space left")

    target = tmp_path / "figure.png"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="no space left"):
        plot.save(Broken(), target)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == b"old"


def test_a_channel_that_was_never_seen_has_a_lane_too():
    streams = Streams.from_arrays([[0.5, 1.0]], [[[1.0, np.nan], [2.0, np.nan]]], channels=("seen", "unseen"))
    embedding, partition = Embedding(), Partition.uniform(2)
    cuts, paths = partition.cuts(streams), realise(streams, embedding)
    figure = plot.overview(streams, cuts, embedding(streams, partition), paths[0], decode(paths))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["unseen", "seen"]
