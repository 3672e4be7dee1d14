import numpy as np
import pytest

from benchmarks.cases import CannotDo, NotInstalled
from benchmarks.coordinates import hall_brackets
from benchmarks.peers import PEERS, ClosedNumPy, PySigLib
from logcde.algebra import Basis

SHAPES = [(2, 2), (3, 3), (2, 4)]
by_name = pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
by_shape = pytest.mark.parametrize(("width", "depth"), SHAPES)


def answer(question, *arguments):
    """What a peer offers for a question; a peer that is absent or cannot do it is skipped with its reason."""
    try:
        return question(*arguments)
    except (NotInstalled, CannotDo) as reason:
        pytest.skip(str(reason))


@pytest.fixture
def path(width):
    return np.random.default_rng(width).normal(size=(6, width)).astype(np.float32)


@by_name
@by_shape
def test_windows_agree_with_the_reference(peer, width, depth, reference):
    engine = answer(peer.windows, width, depth)
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(n, points, width)).astype(np.float32) for n, points in ((3, 5), (2, 9))]
    basis = Basis.of_width(width, depth)
    for batch, logsigs in zip(batches, engine.run(engine.load(batches)), strict=True):
        found = peer.coordinates.to_brackets(np.asarray(logsigs, dtype=np.float64), basis)
        np.testing.assert_allclose(found, [reference(path, depth) for path in batch], rtol=1e-4, atol=2e-5)


@by_name
@by_shape
def test_streams_agree_with_the_reference(peer, width, depth, path, reference):
    stream = answer(answer(peer.stream, width, depth))
    basis = Basis.of_width(width, depth)
    increments = [increment.copy() for increment in np.diff(path, axis=0)]
    stream.update(increments[0])
    for k, increment in enumerate(increments[1:], start=2):
        logsig = stream.read(answer(stream.push, increment)).astype(np.float64)
        expected = reference(path[: k + 1], depth)
        np.testing.assert_allclose(peer.coordinates.to_brackets(logsig, basis), expected, rtol=1e-4, atol=2e-5)


@by_name
@by_shape
def test_blocks_agree_with_the_reference(peer, width, depth, path, reference):
    running = answer(peer.blocks, width, depth)
    found = np.asarray(running(np.diff(path, axis=0)), dtype=np.float64)
    expected = [reference(path[: k + 1], depth) for k in range(1, len(path))]
    basis = Basis.of_width(width, depth)
    np.testing.assert_allclose(peer.coordinates.to_brackets(found, basis), expected, rtol=1e-4, atol=2e-5)


def test_hall_basis_is_that_of_roughpy():
    roughpy = pytest.importorskip("roughpy")
    context = roughpy.get_context(3, 4, roughpy.DPReal)
    ours = [str(bracket).translate(str.maketrans("()", "[]", "' ")) for bracket in hall_brackets(Basis.of_width(3, 4))]
    assert ours == [str(key) for key in context.lie_basis]


def test_absent_peer_says_how_to_install_it():
    class Absent(PySigLib):
        module = "no_such_module"

    assert not Absent().installed
    assert Absent().version is None
    with pytest.raises(NotInstalled, match="pip install pysiglib"):
        Absent().windows(2, 2)


def test_peer_raises_cannot_do():
    with pytest.raises(CannotDo, match="depth 2"):
        ClosedNumPy().windows(2, 3)
