"""Files that have no end, are nested without end, or ask for more than they have: refused by `load`."""

import json
import os

import pytest

import logcde as lc
from logcde.errors import ArtefactError
from tests.artefact.forging import edited, forge
from tests.cli.streaming import a_model


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_load_refuses_files_without_end(name, tmp_path):
    folder = tmp_path / "model"
    a_model().save(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ArtefactError, match=f"{name} cannot be read: it is not a regular file"):
        lc.load(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(ArtefactError, match=f"{name} cannot be read: it is not a regular file"):
        lc.load(folder)


HOSTILE = {
    "nested too deeply": b'{"format": 3, "model": ' + b"[" * 100_000,
    "the key 'format' occurs twice": b'{"format": 3, "format": 3}',
    "integer string conversion": b'{"format": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize(("said", "content"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_load_refuses_hostile_json(said, content, tmp_path):
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(ArtefactError, match=f"model.json is damaged: .*{said}"):
        lc.load(tmp_path)


def test_load_refuses_documents_that_are_too_large(tmp_path):
    (tmp_path / "model.json").touch()
    os.truncate(tmp_path / "model.json", 1 << 36)
    with pytest.raises(ArtefactError, match="model.json cannot be read: it has 68,719,476,736 bytes, more than"):
        lc.load(tmp_path)


def header(**changed):
    """A safetensors file with one tensor, of which the header says something else."""
    facts = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changed
    text = json.dumps({"dynamics.field.matrices": facts}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(8)


TENSORS = (
    header(shape=[1 << 40], data_offsets=[0, 1 << 42]),
    header(shape=[1 << 62, 4]),
    header(shape=[0, 1 << 62], data_offsets=[0, 0]),
    header(data_offsets=[8, 0]),
    header(dtype="F8_E4M3"),
    header()[:-1],
    (1 << 60).to_bytes(8, "little") + b"{}",
    b"",
)


@pytest.mark.parametrize("content", TENSORS, ids=range(len(TENSORS)))
def test_load_refuses_tensors_that_their_header_does_not_describe(content, tmp_path):
    a_model().save(tmp_path / "model")
    forge(tmp_path / "model", "model.safetensors", content)
    with pytest.raises(ArtefactError, match="cannot be loaded"):
        lc.load(tmp_path / "model")


FORGED = {
    "does not describe model.safetensors": lambda d: d.update(files={}),
    "does not describe a model": lambda d: d.update(files=[]),
    "does not describe model.safetensors.": lambda d: d.update(files={"model.safetensors": {"bytes": "1"}}),
    "RecursionError": lambda d: d.update(model=deep(400)),
    "cannot be loaded: ": lambda d: d["model"].update(spec={"timedelta": [10**30, 0, 0]}),
    "1000000000000] is expected": lambda d: d["model"]["dynamics"]["field"]["matrices"].update(shape=[10**12, 10**12]),
}


def deep(depth):
    """A list in a list in a list."""
    found = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(("words", "change"), FORGED.items())
def test_load_bounds_what_a_forged_document_asks_for(words, change, tmp_path):
    with pytest.raises(ArtefactError, match=words):
        lc.load(edited(a_model(), tmp_path, change))
