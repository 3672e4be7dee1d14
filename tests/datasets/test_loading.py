import re

import numpy as np
import pytest

from logcde.datasets import available, find, load
from logcde.errors import DatasetError
from tests.datasets.files import small, write_arff, write_npz, write_ts

WRITERS = {".ts": write_ts, ".arff": write_arff, ".npz": write_npz}


@pytest.mark.parametrize("suffix", WRITERS)
def test_series_labels_and_parts_are_those_of_the_files(tmp_path, suffix):
    values, labels = small()
    values[0][1, 2] = np.nan
    values[3][:, 0] = np.nan
    WRITERS[suffix](tmp_path, "Small", values, labels)
    data = load("Small", tmp_path)
    assert data.classes == ("a", "b")
    assert data.labels.tolist() == [1, 0, 1, 0]
    assert data.tested.tolist() == [False, False, True, True]
    assert (data.length, data.lengths.tolist()) == (6, [6, 6, 4, 6])
    assert data.streams.schema.channels == ("channel 1", "channel 2", "channel 3")
    np.testing.assert_array_equal(data.streams.horizon, np.array([6, 6, 4, 6]) / 6)
    assert data.streams.value.dtype == np.float32
    for one, expected in zip(data.streams, values, strict=True):
        steps = np.rint(one.times * 6).astype(int)
        np.testing.assert_array_equal(one.times, steps / 6)
        dense = np.full_like(expected, np.nan)
        dense[one.channel, np.repeat(steps, np.diff(one.obs_offsets))] = one.value
        np.testing.assert_array_equal(dense, expected)
    assert len(data.streams[3].times) == 5


def test_all_formats_say_the_same(tmp_path):
    values, labels = small(seed=3, lengths=(9, 5, 7, 2))
    read = []
    for suffix, write in WRITERS.items():
        write(tmp_path / suffix, "Small", values, labels)
        read.append(load("Small", tmp_path / suffix))
    for one in read[1:]:
        assert one.streams == read[0].streams
        np.testing.assert_array_equal(one.labels, read[0].labels)


def test_padding_of_any_kind_ends_where_the_lengths_say(tmp_path):
    values, labels = small(lengths=(6, 6, 6, 6))
    write_npz(tmp_path, "Small", values, labels, len_train=np.array([3, 6]), len_test=np.array([6, 6]))
    data = load("Small", tmp_path)
    assert data.lengths.tolist() == [3, 6, 6, 6]
    np.testing.assert_array_equal(data.streams[0].value, values[0][:, :3].T.reshape(-1))


def test_labels_may_be_numbers(tmp_path):
    values, _ = small()
    write_npz(tmp_path, "Small", values, [2, 1, 10, 2])
    assert load("Small", tmp_path).classes == ("1", "10", "2")


def test_arff_with_one_channel(tmp_path):
    for part in ("TRAIN", "TEST"):
        head = "@relation r\n@attribute a0 real\n@attribute a1 real\n@attribute target {'x y','z'}\n@DATA\n"
        (tmp_path / f"One_{part}.arff").write_text(f"{head}1.5,?,'x y'\n-2e-1, 3,z\n")
    data = load("One", tmp_path)
    assert data.classes == ("x y", "z")
    np.testing.assert_array_equal(data.streams.value, np.float32([1.5, -0.2, 3, 1.5, -0.2, 3]))


def test_ts_with_one_channel_and_a_head_in_other_case(tmp_path):
    for part in ("TRAIN", "TEST"):
        head = "@UNIVARIATE true\n@equallength TRUE\n@serieslength 2\n@ClassLabel True a b\n@DATA\n"
        (tmp_path / f"One_{part}.ts").write_text(f"{head}1,NaN:a\n2,3:b\n")
    assert load("One", tmp_path).streams.value.tolist() == [1, 2, 3, 1, 2, 3]


def test_channels_of_one_series_may_differ_in_length(tmp_path):
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"One_{part}.ts").write_text("@classLabel true a\n@data\n1,2,3:4:a\n")
    one = load("One", tmp_path).streams[0]
    assert (one.value.tolist(), one.channel.tolist()) == ([1, 4, 2, 3], [0, 1, 0, 0])


@pytest.mark.parametrize(
    ("head", "line", "complaint"),
    [
        ("", "1,2,x:3,4,5:a", "line 6: channel 1 has 'x' where a number should be."),
        ("", "1,2:3,,5:a", "line 6: channel 2 has an empty place."),
        ("", "1,2::a", "line 6: channel 2 has an empty place."),
        ("", "1,inf:3,4:a", "line 6: channel 1 has an infinite value."),
        ("", "1,1e39:3,4:a", "line 6: channel 1 has an infinite value."),
        ("", "1,2:3,4:c", "line 6: the label is 'c', but the head of the file has the classes a, b."),
        ("", "1,2:a", "line 6: the series has 1 channels where 2 are expected"),
        ("", "1", "line 6: the series has 0 channels where 2 are expected"),
        ("@dimensions 3\n", "1,2:3,4:a", "line 6: the series has 2 channels where 3 are expected"),
        ("@dimensions many\n", "1,2:3,4:a", "line 3: 'many' is not a number of channels or steps."),
        ("@equalLength true\n@seriesLength 9\n", "1,2:3,4:a", "line 7: the series is 2 long, but the head"),
        ("@timeStamps true\n", "1,2:3,4:a", "line 3: the series have stamps of their own"),
        ("@classLabel false\n", "1,2:3,4:a", "line 3: the series have no class labels."),
    ],
)
def test_a_bad_ts_file_is_refused_with_its_place(tmp_path, head, line, complaint):
    first = "" if head else "1,2:3,4:b\n"
    labels = "" if "classLabel" in head else "@classLabel true a b\n"
    (tmp_path / "Bad_TRAIN.ts").write_text(f"# one\n@problemName Bad\n{head}{labels}@data\n{first}{line}\n")
    (tmp_path / "Bad_TEST.ts").write_text("@classLabel true a b\n@data\n1,2:3,4:b\n")
    with pytest.raises(DatasetError, match=re.escape(f"Bad_TRAIN.ts, {complaint}")):
        load("Bad", tmp_path)


@pytest.mark.parametrize(
    ("head", "line", "complaint"),
    [
        ("@attribute class {a,b}", r"'1,2\n3,4,a", "line 4: the quotation mark ' is not closed."),
        ("@attribute class {a,b}", r"'1,2\n3,4',c", "line 4: the label is 'c'"),
        ("@attribute class {a,b}", "a", "line 4: channel 1 has an empty place."),
        ("@attribute target numeric", r"'1,2\n3,4',0.5", "line 2: the last attribute is not a list of classes"),
    ],
)
def test_a_bad_arff_file_is_refused_with_its_place(tmp_path, head, line, complaint):
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"Bad_{part}.arff").write_text(f"@relation Bad\n{head}\n@data\n{line}\n")
    with pytest.raises(DatasetError, match=re.escape(f"Bad_TRAIN.arff, {complaint}")):
        load("Bad", tmp_path)


@pytest.mark.parametrize("suffix", [".ts", ".arff"])
@pytest.mark.parametrize("content", ["", "@classLabel true a b\n@attribute class {a,b}\n@data\n", "\0\1\2"])
def test_a_file_without_series_is_refused(tmp_path, suffix, content):
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"Bad_{part}{suffix}").write_text(content)
    with pytest.raises(DatasetError, match=f"Bad_TRAIN{suffix} has no series"):
        load("Bad", tmp_path)


VALUES = np.ones((2, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"X_train": None}, "has no array X_train. It needs"),
        ({"y_test": None}, "has no array y_test. It needs"),
        ({"X_test": VALUES[0]}, "X_test is float32 of shape (3, 4), but it must be numbers (series, channel, step)"),
        ({"X_test": VALUES.astype(str)}, "X_test is <U32 of shape (2, 3, 4), but it must be numbers"),
        ({"X_test": VALUES[:, :, :0]}, "X_test is float32 of shape (2, 3, 0)"),
        ({"y_train": ["a"]}, "y_train has shape (1,), but X_train has 2 series"),
        ({"len_train": [4, 5]}, "len_train must be whole numbers from 1 to 4"),
        ({"len_train": [0, 4]}, "len_train must be whole numbers from 1 to 4"),
        ({"len_train": [1.5, 4]}, "len_train must be whole numbers from 1 to 4"),
        ({"X_train": VALUES * np.inf}, "X_train[0, 0, 0] is infinite"),
        (
            {"X_test": VALUES[:, :2]},
            "Bad: series 0 of the test part, counted from 0, has 2 channels, but others have 3",
        ),
        ({"X_train": VALUES * np.nan}, "Bad: series 0 of the training part, counted from 0, has no observation at all"),
        ({"y_train": np.array(["a", None], object)}, "cannot be read as an .npz file of plain arrays: Object arrays"),
    ],
)
def test_a_bad_npz_file_is_refused(tmp_path, changed, complaint):
    arrays = {"X_train": VALUES, "y_train": ["a", "b"], "X_test": VALUES, "y_test": ["a", "b"]} | changed
    np.savez(tmp_path / "Bad.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(DatasetError, match=re.escape(complaint)):
        load("Bad", tmp_path)


def test_a_file_that_is_no_npz_file_is_refused(tmp_path):
    (tmp_path / "Bad.npz").write_bytes(b"not a zip file")
    with pytest.raises(DatasetError, match="Bad.npz is not an .npz file, or was cut short"):
        load("Bad", tmp_path)
    values, labels = small()
    write_npz(tmp_path, "Bad", values, labels)
    content = bytearray((tmp_path / "Bad.npz").read_bytes())
    content[150:200] = bytes(50)
    (tmp_path / "Bad.npz").write_bytes(content)
    with pytest.raises(DatasetError, match="cannot be read as an .npz file of plain arrays"):
        load("Bad", tmp_path)


def test_a_set_is_found_in_the_folder_and_in_the_folder_of_its_name(tmp_path, monkeypatch):
    values, labels = small()
    write_ts(tmp_path / "Inner", "Inner", values, labels)
    write_arff(tmp_path, "Outer", values, labels)
    monkeypatch.setenv("LOGCDE_DATA", str(tmp_path))
    assert [file.name for file in find("Inner")] == ["Inner_TRAIN.ts", "Inner_TEST.ts"]
    assert load("Inner").streams == load("Outer").streams
    write_npz(tmp_path, "Outer", values, labels)
    assert find("Outer") == (tmp_path / "Outer.npz",)
    np.savez(tmp_path / "NoSeries.npz", values=np.ones(3))
    (tmp_path / "NotAZip.npz").write_text("")
    (tmp_path / "Half_TRAIN.ts").write_text("")
    assert available() == {"Inner": find("Inner"), "Outer": find("Outer")}
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    assert find("Outer", f"~/{tmp_path.name}") == (tmp_path / "Outer.npz",)


def test_what_is_missing_is_said_with_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.delenv("LOGCDE_DATA", raising=False)
    with pytest.raises(DatasetError, match="There is no folder to look for data sets in. Say where .* LOGCDE_DATA"):
        load("EigenWorms")
    with pytest.raises(DatasetError, match="none, is not there"):
        load("EigenWorms", tmp_path / "none")
    with pytest.raises(DatasetError) as error:
        load("EigenWorms", tmp_path)
    for part in ("EigenWorms.npz", "EigenWorms_TRAIN.ts", ".arff", str(tmp_path / "EigenWorms")):
        assert part in str(error.value)
    (tmp_path / "Unheard_TEST.ts").write_text("")
    with pytest.raises(DatasetError, match="Of two files only .*Unheard_TEST.ts is there"):
        load("Unheard", tmp_path)


def test_a_file_that_may_not_be_read_is_an_error_of_its_own(tmp_path, monkeypatch):
    values, labels = small()
    write_ts(tmp_path, "Small", values, labels)

    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(DatasetError, match="Small_TRAIN.ts cannot be read: Permission denied."):
        load("Small", tmp_path)
