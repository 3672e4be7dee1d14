"""Commands on many files: folders of parts, what an interruption leaves, damaged files, and files as one table."""

import json

import fsspec
import numpy as np
import polars
import pytest

from logcde._files import held
from logcde.scale import engines, parts
from tests.cli.tables import COLUMNS, run, write
from tests.cli.training_tables import QUICK, printed, vitals
from tests.scale.folders import by_series, by_time, read_folder, with_dense_series

EVERY = ("--every", 5, "--rows", 60)


def embed(source, output, *options):
    return run("embed", source, *COLUMNS, *EVERY, *options, "-o", output)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """One file, the same rows by series, and by time; and what is made of the one file."""
    folder = tmp_path_factory.mktemp("tables")
    frame = with_dense_series()
    write(frame, folder / "one.parquet")
    by_series(frame, folder / "clustered")
    by_time(frame, folder / "scattered")
    assert embed(folder / "one.parquet", folder / "one-out.parquet") == 0
    return folder


@pytest.fixture(scope="module")
def expected(tables):
    return polars.read_parquet(tables / "one-out.parquet").sort("id", maintain_order=True)


def names(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("source", ["clustered", "scattered", "clustered/*.parquet"])
def test_parts_equal_one_file_to_the_bit(tables, expected, tmp_path, source, capsys):
    assert embed(tables / source, tmp_path / "out") == 0
    assert read_folder(tmp_path / "out").equals(expected)
    printed_by = capsys.readouterr().out
    assert f"Wrote {len(expected):,} rows of 32 series" in printed_by
    assert ("gathered by a hash" in printed_by) == (source == "scattered")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {one["file"] for one in manifest["parts"]} == set(names(tmp_path / "out")) - {"manifest.json"}
    assert manifest["rows"] == len(expected)
    assert names(tmp_path) == ["out"]


def test_many_files_into_one_file(tables, expected, tmp_path):
    for source in ("clustered", "scattered"):
        assert embed(tables / source, tmp_path / "out.parquet") == 0
        assert polars.read_parquet(tmp_path / "out.parquet").sort("id", maintain_order=True).equals(expected)


@pytest.mark.parametrize("features", ["windows", "logsigs"])
def test_features_are_fitted_once(tables, tmp_path, features):
    options = ("--features", features, "--rows", 10**6)
    for source, out in (("one.parquet", "one.parquet"), ("clustered", "c"), ("scattered", "s")):
        assert run("embed", tables / source, *COLUMNS, *options, "-o", tmp_path / out) == 0
    one = polars.read_parquet(tmp_path / "one.parquet").sort("id")
    assert read_folder(tmp_path / "c").equals(one)
    order = polars.read_parquet(tables / "one.parquet")["id"].unique(maintain_order=True)
    assert read_folder(tmp_path / "s")["id"].to_list() == sorted(order.to_list())


def test_features_of_other_first_series_are_other_features(tmp_path):
    by_series(with_dense_series(), tmp_path / "in")
    command = ("embed", tmp_path / "in", *COLUMNS, "--features", "windows", "--horizon", 100, "-o", tmp_path / "out")
    assert run(*command) == 0
    frame = polars.read_parquet(tmp_path / "in" / "0.parquet")
    frame.with_columns(polars.col("x") * 9).write_parquet(tmp_path / "in" / "0.parquet")
    (tmp_path / "out" / "0.parquet").unlink()
    assert "1.parquet is there already, and was made by another command or of other files" in run(*command)


def test_text_files_have_types_of_the_whole(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,t,name,x\n1,0,a,1\n1,4,b,2\n")
    (tmp_path / "in" / "b.csv").write_text("id,t,name,x\nq,0.5,a,1\nq,9.5,b,2\n")
    assert embed(tmp_path / "in", tmp_path / "out") == 0
    made = read_folder(tmp_path / "out")
    assert made["id"].unique(maintain_order=True).to_list() == ["1", "q"]
    assert made["stop"].max() == 9.5
    assert len(made) == 4


def test_urls(tables, expected, tmp_path):
    system = fsspec.filesystem("memory")
    try:
        for source in ("clustered", "scattered"):
            system.put(str(tables / source), f"/cli/{source}", recursive=True)
            assert embed(f"memory://cli/{source}", f"memory://cli/out-{source}") == 0
            assert embed(f"memory://cli/{source}/*.parquet", f"memory://cli/out-{source}") == 0
            system.get(f"/cli/out-{source}", str(tmp_path / source), recursive=True)
            assert read_folder(tmp_path / source).equals(expected)
            assert "manifest.json" in names(tmp_path / source)
            assert not [file for file in system.find("/cli") if ".logcde-" in file]
        assert embed(f"file://{tables}/clustered", f"file://{tmp_path}/local") == 0
        assert read_folder(tmp_path / "local").equals(expected)
    finally:
        system.rm("/cli", recursive=True)


@pytest.mark.parametrize("source", ["clustered", "scattered"])
def test_an_interrupted_command_makes_only_what_is_missing(tables, expected, tmp_path, monkeypatch, capsys, source):
    out, written = tmp_path / "out", []
    write_one = parts._written

    def stopping(plan, groups, part):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(part.name)
        return write_one(plan, groups, part)

    monkeypatch.setattr(parts, "_written", stopping)
    assert embed(tables / source, out) == 130
    assert "2 complete parts are in" in capsys.readouterr().err
    assert names(out) == sorted(written)
    before = {name: (out / name).stat().st_mtime_ns for name in written}
    written.append("no more")
    assert embed(tables / source, out) == 0
    assert not set(written[3:]) & set(written[:2])
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert read_folder(out).equals(expected)
    assert "2 of them by an earlier run" in capsys.readouterr().out
    done = len(written)
    assert embed(tables / source, out) == 0
    assert len(written) == done


def test_a_folder_of_another_command_is_refused(tables, tmp_path):
    assert embed(tables / "clustered", tmp_path / "out") == 0
    assert "was made by another command or of other files" in embed(tables / "clustered", tmp_path / "out", "--no-time")
    assert "which is not of this command" in embed(tables / "scattered", tmp_path / "out")
    assert "is the folder of the input" in embed(tables / "clustered" / "*.parquet", tables / "clustered")
    assert "is in the folder of the input" in embed(tables / "clustered", tables / "clustered" / "out")
    assert read_folder(tmp_path / "out").columns[-1] == "[#temp, time]"


def test_any_change_of_a_part_or_of_the_manifest_is_found(tables, tmp_path):
    out = tmp_path / "out"
    assert embed(tables / "clustered", out) == 0
    manifest, part = (out / "manifest.json").read_bytes(), (out / "1.parquet").read_bytes()
    (out / "manifest.json").write_bytes(manifest.replace(b'"rows"', b'"sowr"', 1))
    assert "is not a manifest of logcde, or is damaged" in embed(tables / "clustered", out)
    (out / "manifest.json").write_bytes(manifest)
    for name in (b'"tally"', b'"lost"', b'"key"'):
        assert part.count(name) == 1
        (out / "1.parquet").write_bytes(part.replace(name, name[::-1]))
        assert "1.parquet is there already" in embed(tables / "clustered", out)
    (out / "1.parquet").write_bytes(part)
    assert embed(tables / "clustered", out) == 0


def test_a_folder_that_another_process_writes_is_refused(tables, tmp_path):
    with held(tmp_path / "out"):
        assert "is in use by process" in embed(tables / "clustered", tmp_path / "out")


def test_a_changed_file_is_made_again_only_if_it_changes_nothing_else(tables, tmp_path):
    source = tmp_path / "in"
    by_series(with_dense_series(), source)
    assert embed(source, tmp_path / "out", "--horizon", 100) == 0
    polars.read_parquet(source / "1.parquet").with_columns(x=polars.col("x") + 1).write_parquet(source / "1.parquet")
    assert "1.parquet is there already" in embed(source, tmp_path / "out", "--horizon", 100)
    (tmp_path / "out" / "1.parquet").unlink()
    assert embed(source, tmp_path / "out", "--horizon", 100) == 0


@pytest.mark.parametrize("damage", ["no table", "cut", "disorder"])
def test_a_damaged_file_is_named_and_the_others_finish(tables, tmp_path, damage, capsys):
    source = tmp_path / "in"
    by_series(with_dense_series(), source)
    frame = polars.read_parquet(source / "2.parquet")
    if damage == "disorder":
        frame.reverse().write_parquet(source / "2.parquet")
    else:
        (source / "2.parquet").write_bytes(b"no table at all" if damage == "no table" else b"PAR1" + bytes(90))
    assert embed(source, tmp_path / "out") == 1
    errors = capsys.readouterr().err
    assert "2.parquet" in errors
    assert "1 part is missing. " in errors
    assert names(tmp_path / "out") == ["0.parquet", "1.parquet", "3.parquet", "manifest.json"]
    (failed,) = json.loads((tmp_path / "out" / "manifest.json").read_text())["failed"]
    assert "2.parquet" in failed["source"]
    frame.write_parquet(source / "2.parquet")
    assert embed(source, tmp_path / "out") == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["failed"] == []


def test_a_damaged_file_among_scattered_ones_stops_everything(tables, tmp_path):
    source = by_time(with_dense_series(), tmp_path / "in")
    (source / "hour2.parquet").write_bytes(b"PAR1" + bytes(90))
    message = embed(source, tmp_path / "out")
    assert "hour2.parquet" in message
    assert "all of them would lack its rows" in message
    assert not (tmp_path / "out").exists()


def test_series_that_cross_files_although_they_were_said_not_to(tables, tmp_path):
    message = embed(tables / "scattered", tmp_path / "out", "--unsplit")
    assert "hour0.parquet and in" in message
    assert "--unsplit" in message
    assert embed(tables / "clustered", tmp_path / "out", "--unsplit") == 0


def test_one_file_as_output_is_local_and_none_of_the_inputs(tables, tmp_path):
    by_series(with_dense_series(), tmp_path / "in")
    assert "is the input table" in embed(tmp_path / "in" / "*.parquet", tmp_path / "in" / "2.parquet")
    assert "memory://a.parquet is one file, and a URL" in embed(tables / "clustered", "memory://a.parquet")
    assert "ends in none of" in embed(tables / "one.parquet", "memory://out")


def test_options_of_folders_are_refused_for_files(tables, tmp_path):
    assert "--unsplit is for a folder" in embed(tables / "one.parquet", tmp_path / "a.parquet", "--unsplit")
    assert "--ray is for a folder" in embed(tables / "clustered", tmp_path / "a.parquet", "--ray", "local")
    assert "--rows is 0" in run("embed", tables / "clustered", *COLUMNS, "--rows", 0, "-o", tmp_path / "out")


def test_a_full_disk_stops_and_keeps_what_is_complete(tables, tmp_path, monkeypatch):
    import errno

    import pyarrow.parquet

    class Full(pyarrow.parquet.ParquetWriter):
        def write_table(self, *arguments):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "ParquetWriter", Full)
    assert "No space left on device. Parts that are complete were kept" in embed(tables / "clustered", tmp_path / "out")
    assert names(tmp_path / "out") == []


def test_series_are_gathered_in_runs_that_memory_holds(tables, expected, tmp_path, monkeypatch):
    runs = []
    write_run = engines._write_run

    def counted(path, table, buckets):
        runs.append(len(table))
        return write_run(path, table, buckets)

    monkeypatch.setattr(engines, "_write_run", counted)
    assert embed(tables / "scattered", tmp_path / "out") == 0
    assert len(runs) >= 3
    assert max(runs) < 2 * 60 + max(len(polars.read_parquet(file)) for file in (tables / "scattered").iterdir())


def test_describe_reads_many_files_as_one_table(tables, capsys):
    found = []
    for source in ("one.parquet", "clustered", "scattered"):
        assert run("describe", tables / source, *COLUMNS, "--json") == 0
        found.append(printed(capsys))
    for other in found[1:]:
        assert {**other, "file": ""} == {**found[0], "file": ""}


def test_train_evaluate_stress_and_predict_on_many_files(tmp_path, untrained, capsys):
    write(vitals().drop("extra"), tmp_path / "vitals.parquet")
    by_series(vitals().drop("extra"), tmp_path / "in")
    model, many = tmp_path / "model", tmp_path / "in" / "*.parquet"
    assert run("train", tmp_path / "in", *QUICK, "--target", "state", "-o", model) == 0
    capsys.readouterr()
    assert run("train", tmp_path / "in", *QUICK, "--target", "state", "-o", model) == 0
    assert "has trained" in capsys.readouterr().out
    found = []
    for source in (tmp_path / "vitals.parquet", tmp_path / "in"):
        assert run("evaluate", model, source, "--json") == 0
        found.append(printed(capsys))
    assert found[0]["metrics"] == found[1]["metrics"]
    assert run("evaluate", model, many, "--held-out") == 0
    assert run("stress", model, "--drop", 0.5, "--seeds", 0, "--json") == 0
    assert printed(capsys)["series"] == 4
    assert run("predict", model, tmp_path / "vitals.parquet", "-o", tmp_path / "out.parquet") == 0
    assert run("predict", model, many, "-o", tmp_path / "out") == 0
    one, parts_of = polars.read_parquet(tmp_path / "out.parquet").sort("id"), read_folder(tmp_path / "out")
    assert one.columns == parts_of.columns
    assert one[:, :3].equals(parts_of[:, :3])
    np.testing.assert_allclose(one[:, 3:].to_numpy(), parts_of[:, 3:].to_numpy(), rtol=1e-5)
    assert "--at and --every are for forecasts" in run("predict", model, many, "--every", 2, "-o", tmp_path / "x")
