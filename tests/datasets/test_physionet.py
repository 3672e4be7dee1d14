"""Both forms of the PhysioNet 2012 files give the same stays; faults in them are refused."""

import os
from pathlib import Path

import numpy as np
import pytest

from logcde.datasets import PLAUSIBLE, physionet2012
from logcde.errors import DatasetError

VARIABLES = ["Glucose", "HR", "Weight"]
# stay, minutes, variable, value
ROWS = {
    "a": [(7, 0, 2, -1.0), (7, 30, 1, 80.0), (7, 30, 1, 90.0), (7, 2880, 0, 140.0), (9, 61, 2, 70.5)],
    "b": [(12, 5, 0, 99.0)],
}
STATIC = {7: (54.0, 0.0, -1.0, 4.0), 9: (61.0, 1.0, 175.3, 2.0), 12: (33.0, -1.0, 180.0, 1.0)}
DIED = {7: False, 9: True, 12: False}


def write_npz(folder, **changed):
    arrays = {"variables": np.array(VARIABLES), "static_names": np.array(["Age", "Gender", "Height", "ICUType"])}
    for part, rows in ROWS.items():
        ids = sorted({row[0] for row in rows})
        table = np.array(rows)
        arrays |= {
            f"ids_{part}": np.array(ids, np.int32),
            f"offsets_{part}": np.searchsorted(table[:, 0], [*ids, 99]),
            f"t_min_{part}": table[:, 1].astype(np.uint16),
            f"var_{part}": table[:, 2].astype(np.uint8),
            f"value_{part}": table[:, 3].astype(np.float32),
            f"static_{part}": np.array([STATIC[one] for one in ids], np.float32),
            f"y_{part}": np.array([DIED[one] for one in ids], np.int8),
        }
    np.savez(folder / "PhysioNet2012.npz", **(arrays | changed))


def write_text(folder):
    for part, rows in ROWS.items():
        (folder / f"set-{part}").mkdir()
        ids = sorted({row[0] for row in rows})
        for one in ids:
            names = ["RecordID", "Age", "Gender", "Height", "ICUType"]
            lines = [f"00:00,{name},{value}" for name, value in zip(names, (one, *STATIC[one]), strict=True)]
            lines += [f"{m // 60:02d}:{m % 60:02d},{VARIABLES[v]},{x}" for i, m, v, x in rows if i == one]
            (folder / f"set-{part}" / f"{one}.txt").write_text("Time,Parameter,Value\n" + "\n".join(lines) + "\n")
        outcomes = "\n".join(f"{one},5,1,9,-1,{int(DIED[one])}" for one in ids)
        head = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"
        (folder / f"Outcomes-{part}.txt").write_text(head + outcomes + "\n")


@pytest.mark.parametrize("write", [write_npz, write_text])
def test_physionet2012_reads_both_forms(tmp_path, write):
    write(tmp_path)
    stays = physionet2012(tmp_path)
    assert repr(stays) == "Stays(3 stays, 4 observations, 1 died)"
    assert stays.streams.schema.channels == tuple(VARIABLES)
    assert stays.streams.ids.tolist() == [7, 9, 12]
    np.testing.assert_allclose(stays.streams.times, [0.5, 48.0, 61 / 60, 5 / 60])
    np.testing.assert_allclose(stays.streams.value, [85.0, 140.0, 70.5, 99.0])  # two values at one stamp: their mean
    assert stays.streams.channel.tolist() == [1, 0, 2, 0]  # a weight of -1 is not an observation
    np.testing.assert_array_equal(stays.streams.horizon, 48.0)
    np.testing.assert_allclose(stays.static[0], [54.0, 0.0, np.nan, 4.0])
    np.testing.assert_allclose(stays.static[2], [33.0, np.nan, 180.0, 1.0])
    assert stays.died.tolist() == [False, True, False]
    assert stays.part.tolist() == ["a", "a", "b"]


def test_missing_or_invalid_files_are_refused(tmp_path):
    with pytest.raises(
        DatasetError, match="neither the file PhysioNet2012.npz, nor the folders set-a.* downloaded from"
    ):
        physionet2012(tmp_path)
    write_text(tmp_path)
    (tmp_path / "Outcomes-b.txt").write_text("RecordID,In-hospital_death\n1,0\n")
    with pytest.raises(DatasetError, match="has no outcome of stay 12"):
        physionet2012(tmp_path)
    (tmp_path / "Outcomes-b.txt").write_text("RecordID,SOFA\n12,0\n")
    with pytest.raises(DatasetError, match="In-hospital_death are needed"):
        physionet2012(tmp_path)
    (tmp_path / "Outcomes-b.txt").unlink()
    with pytest.raises(DatasetError, match="Outcomes-b.txt does not exist"):
        physionet2012(tmp_path)
    stay = tmp_path / "set-b" / "12.txt"
    stay.write_text(stay.read_text() + "01:00,HR,fast\n")
    with pytest.raises(DatasetError, match="12.txt, line 8, is '01:00,HR,fast', not hh:mm"):
        physionet2012(tmp_path)
    stay.write_text("Time,Parameter,Value\n00:00,Age,3\n")
    with pytest.raises(DatasetError, match="no RecordID at 00:00"):
        physionet2012(tmp_path)
    write_npz(tmp_path, static_names=np.array(["Age"]))
    with pytest.raises(DatasetError, match="static features Age, but"):
        physionet2012(tmp_path)
    (tmp_path / "PhysioNet2012.npz").write_text("no")
    with pytest.raises(DatasetError, match="is not the data set PhysioNet 2012"):
        physionet2012(tmp_path)


@pytest.mark.skipif("LOGCDE_DATA" not in os.environ, reason="needs the folder of data sets")
def test_real_data_has_published_counts():
    if not (Path(os.environ["LOGCDE_DATA"]) / "PhysioNet2012.npz").is_file():
        pytest.skip("PhysioNet 2012 is not in LOGCDE_DATA")
    stays = physionet2012()
    assert len(stays) == 12_000
    assert [int(stays.died[stays.part == part].sum()) for part in "abc"] == [554, 568, 585]
    assert set(PLAUSIBLE) <= set(stays.streams.schema.channels)
    assert len(stays.streams.schema.channels) == 37
