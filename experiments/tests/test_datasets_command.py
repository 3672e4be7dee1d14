"""`python -m experiments datasets`: the list of data sets, and the check of one."""

import numpy as np
import pytest

from experiments.__main__ import main
from tests.datasets.files import small, write_npz


def printed(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main(["datasets", *arguments])
    assert end.value.code == 0
    return capsys.readouterr().out.splitlines()


def test_list_shows_files_and_published_sizes(tmp_path, capsys):
    write_npz(tmp_path, "SelfRegulationSCP2", *small())
    write_npz(tmp_path, "Mine", *small())
    lines = printed(capsys, "list", "--data", str(tmp_path))
    rows = {line.split()[0]: line for line in lines[1:]}
    assert " ".join(rows["SelfRegulationSCP2"].split()[1:]) == ".npz 200 + 180 7 1152 2 channels are lagged copies"
    assert "not here" in rows["EigenWorms"]
    assert "7 to 29" in rows["JapaneseVowels"]
    assert rows["Mine"].split() == ["Mine", ".npz"]


def test_check_of_an_unknown_data_set(tmp_path, capsys):
    values, labels = small()
    values[3] = values[0]
    write_npz(tmp_path, "Mine", values, labels)
    assert printed(capsys, "check", "Mine", "--data", str(tmp_path)) == [
        f"Mine, from {tmp_path / 'Mine.npz'}",
        "  series      2 + 2 (train + test), 3 channels, 4 to 6 steps",
        "  classes     a: 1 + 1, b: 1 + 1",
        "  published   no sizes are known for a data set of this name",
        "  copies      1 of the series are exact copies of earlier ones",
        "  lag         none: X[c + 1, t] = X[c, t + 3] for 0 of 20 pairs (0%)",
    ]


def test_check_reports_other_sizes_and_lagged_channels(tmp_path, capsys, monkeypatch):
    sequences = np.random.default_rng(0).normal(size=(4, 40)).astype(np.float32)
    values = [np.stack([one[4 * channel :][:20] for channel in range(4)]) for one in sequences]
    values[3] = values[3][:, ::-1]
    write_npz(tmp_path, "SelfRegulationSCP1", values, list("abab"))
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    lines = printed(capsys, "check", "SelfRegulationSCP1")
    assert lines[3].startswith("  published   DIFFERENT: 4 channels, published are 6; 20 steps in the longest series, ")
    assert lines[5:] == [
        "  lag         DEFECT: channels are lagged copies of one sequence, in 3 of 4 series:",
        "              X[c + 1, t] = X[c, t + 4] for 144 of 192 pairs (75.00%).",
        "              The archive's own files have this defect, and published results are on these files.",
        "              The recorded channels are the data set BCI2_Ia_raw.",
    ]


def test_check_of_one_channel_has_no_lag(tmp_path, capsys):
    write_npz(tmp_path, "One", *small(channels=1))
    lines = printed(capsys, "check", "One", "--data", str(tmp_path))
    assert lines[-1] == "  lag         not defined for one channel, or for series with fewer steps than channels"


def test_check_of_a_missing_data_set_is_an_error(tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["datasets", "check", "EigenWorms", "--data", str(tmp_path)])
    assert str(end.value.code).startswith("experiments: The data set 'EigenWorms' is neither in ")
