import itertools

import numpy as np
import pytest

from logcde.algebra import Basis, SparseMap, witt_dimensions
from logcde.algebra.sparse import inverse_unitriangular
from logcde.errors import BasisError


def is_lyndon(word):
    return all(word < word[cut:] for cut in range(1, len(word)))


def expand_word(word, lyndon):
    """P_w by the definition, as a dictionary from words to coefficients."""
    if len(word) == 1:
        return {word: 1}
    cut = next(cut for cut in range(1, len(word)) if word[cut:] in lyndon)
    left, right = expand_word(word[:cut], lyndon), expand_word(word[cut:], lyndon)
    total = {}
    for (u, a), (v, b) in itertools.product(left.items(), right.items()):
        total[u + v] = total.get(u + v, 0) + a * b
        total[v + u] = total.get(v + u, 0) - a * b
    return total


def flat(word, width):
    return sum(letter * width ** (len(word) - 1 - place) for place, letter in enumerate(word))


@pytest.mark.parametrize(("width", "depth"), [(1, 3), (2, 7), (3, 5), (5, 3)])
def test_lyndon_words_and_brackets_follow_the_definition(width, depth):
    basis = Basis.of_width(width, depth)
    lyndon = [
        word
        for level in range(1, depth + 1)
        for word in itertools.product(range(width), repeat=level)
        if is_lyndon(word)
    ]
    assert basis.words == tuple(lyndon)
    assert basis.dimension == len(lyndon)
    for word, (left, right) in zip(lyndon, basis.brackets.tolist(), strict=True):
        if len(word) == 1:
            assert (left, right) == (-1, -1)
        else:
            assert basis.words[left] + basis.words[right] == word
    for level in range(1, depth + 1):
        words = lyndon[basis.level(level)]
        expansion = np.zeros((width**level, len(words)), dtype=int)
        for place, word in enumerate(words):
            for other, amount in expand_word(word, set(lyndon)).items():
                expansion[flat(other, width), place] = amount
        np.testing.assert_array_equal(basis.expansion(level).as_matrix(), expansion)
        projection = basis.projection(level)
        assert set(projection.cols.tolist()) == {flat(word, width) for word in words}
        np.testing.assert_array_equal(projection.as_matrix() @ expansion, np.eye(len(words)))


def test_witt_dimensions_match_published_tables():
    assert witt_dimensions(1, 4) == (1, 0, 0, 0)
    assert witt_dimensions(2, 10) == (2, 1, 2, 3, 6, 9, 18, 30, 56, 99)
    assert witt_dimensions(3, 6) == (3, 3, 8, 18, 48, 116)
    assert witt_dimensions(64, 3) == (64, 2016, 87360)


def test_index_finds_labels():
    basis = Basis(("hr", "bp", "time"), 3)
    assert basis.labels[:6] == ("hr", "bp", "time", "[hr, bp]", "[hr, time]", "[bp, time]")
    assert basis.labels[6:9] == ("[hr, [hr, bp]]", "[hr, [hr, time]]", "[[hr, bp], bp]")
    assert [basis.index(label) for label in basis.labels] == list(range(basis.dimension))
    with pytest.raises(BasisError, match=r"no coordinate '\[bp, hr\]'"):
        basis.index("[bp, hr]")


def test_basis_letter_may_be_named_like_a_bracket():
    assert Basis(("a", "b", "[a, b]"), 2).index("[a, b]") == 2


def test_coordinates_of_any_bracket():
    basis = Basis(("a", "b", "c"), 4)
    for label, bracket in {"[[a, b], c]": (("a", "b"), "c"), "[a, [b, c]]": ("a", ("b", "c"))}.items():
        expected = np.zeros(basis.dimension, dtype=int)
        # [[a, b], c] is not standard: [a, [b, c]] + [[a, c], b] by Jacobi.
        for part in {"[[a, b], c]": ("[a, [b, c]]", "[[a, c], b]"), "[a, [b, c]]": ("[a, [b, c]]",)}[label]:
            expected[basis.index(part)] += 1
        np.testing.assert_array_equal(basis.coordinates(bracket), expected)
    assert not basis.coordinates(("a", "a")).any()
    np.testing.assert_array_equal(basis.coordinates(("b", "a")), -basis.coordinates(("a", "b")))
    assert not basis.truncate(2).coordinates((("a", "b"), "c")).any()
    np.testing.assert_array_equal(basis.coordinates("b"), np.eye(basis.dimension)[1])
    with pytest.raises(BasisError, match="no letter 'd'"):
        basis.coordinates(("a", "d"))


def test_basis_equality_and_hash():
    assert Basis(("1", "2"), 2) == Basis.of_width(2, 2)
    assert hash(Basis(("1", "2"), 2)) == hash(Basis.of_width(2, 2))
    assert Basis(("a", "b"), 2) != Basis(("b", "a"), 2)
    assert Basis(("a", "b"), 2) != Basis(("a", "b"), 3)


@pytest.mark.parametrize(
    ("letters", "depth", "message"),
    [
        ((), 2, "has no letters"),
        (("a", "b", "a"), 2, "'a' occurs more than once"),
        (("a",), 0, "depth of the basis is 0. Choose a depth of at least 1"),
        (tuple(map(str, range(100))), 5, r"100\*\*5 words"),
    ],
)
def test_basis_refuses_bad_letters_and_depths(letters, depth, message):
    with pytest.raises(BasisError, match=message):
        Basis(letters, depth)


def test_basis_refuses_levels_above_its_depth():
    basis = Basis.of_width(2, 2)
    for ask in (basis.level, basis.truncate, basis.expansion, basis.projection):
        with pytest.raises(BasisError, match="levels 1 to 2, not 3"):
            ask(3)


def test_basis_over_63_letters():
    basis = Basis(tuple(f"channel {place}" for place in range(63)), 3)
    assert len(basis.labels) == basis.dimension
    assert len(basis.projection(3).rows) > basis.sizes[2]


def test_basis_arrays_are_read_only():
    basis = Basis.of_width(2, 2)
    for array in (basis.brackets, basis.expansion(2).rows, basis.projection(2).coefficients):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_inverse_unitriangular_matches_dense_inverse():
    rng = np.random.default_rng(0)
    matrix = np.tril(rng.integers(-2, 3, (12, 12)), -1) * (rng.random((12, 12)) < 0.4)
    rows, cols = np.nonzero(matrix)
    inverse = inverse_unitriangular(SparseMap.collect(rows, cols, matrix[rows, cols], matrix.shape))
    np.testing.assert_array_equal((np.eye(12, dtype=int) - matrix) @ inverse.as_matrix(), np.eye(12))
