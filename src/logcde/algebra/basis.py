"""The Lyndon basis that travels with its coordinates.

Letters come first, then brackets by length and in lexicographic order of their Lyndon words, with standard bracketing:
the coordinates of the paper's `eq:interval_log_signature_method`. At depth 2 the coordinate of [i, j], i < j, is half
of S^ij - S^ji. NumPy only: nothing here knows of JAX.
"""

import operator
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from jaxtyping import Int, Int64

from logcde.algebra import lyndon
from logcde.algebra.sparse import SparseMap
from logcde.errors import BasisError

Bracket: TypeAlias = str | tuple
"""A letter's name, or a pair of brackets: ("a", ("a", "b")) is [a, [a, b]]."""


@dataclass(frozen=True)
class Basis:
    """Lyndon basis of the free Lie algebra over named letters, truncated at `depth`.

    Two bases are equal if their letters and depths are.

    >>> basis = Basis(("heart_rate", "time"), depth=3)
    >>> basis.dimension, basis.sizes
    (5, (2, 1, 2))
    >>> basis.labels[2:]
    ('[heart_rate, time]', '[heart_rate, [heart_rate, time]]', '[[heart_rate, time], time]')
    """

    letters: tuple[str, ...]
    depth: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "letters", tuple(self.letters))
        object.__setattr__(self, "depth", operator.index(self.depth))
        if self.depth < 1:
            raise BasisError(f"The depth of the basis is {self.depth}.", "Choose a depth of at least 1.")
        if not self.letters:
            raise BasisError("The basis has no letters.", "Pass at least one.")
        doubled = sorted(letter for letter, count in Counter(self.letters).items() if count > 1)
        if doubled:
            raise BasisError(f"The letter {doubled[0]!r} occurs more than once.", "Give letters different names.")
        if self.width ** min(self.depth, 31) >= 2**31:
            raise BasisError(
                f"Depth {self.depth} over {self.width} letters has {self.width}**{self.depth} words in its top level, "
                "too many to index.",
                "Choose a smaller depth or fewer channels.",
            )

    @classmethod
    def of_width(cls, width: int, depth: int) -> "Basis":
        """Basis over letters named "1", "2", ..., str(width).

        >>> Basis.of_width(2, 2).labels
        ('1', '2', '[1, 2]')
        """
        return cls(tuple(str(letter + 1) for letter in range(width)), depth)

    @property
    def width(self) -> int:
        """Dimension of level one, the space of the driving path: one coordinate for each letter."""
        return len(self.letters)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of coordinates in each level 1..depth."""
        return lyndon.witt_dimensions(self.width, self.depth)

    @cached_property
    def dimension(self) -> int:
        """Dimension of the truncated free Lie algebra: coordinates of all levels together."""
        return sum(self.sizes)

    def level(self, level: int) -> slice:
        """The slice of the coordinates of one level 1..depth.

        >>> Basis.of_width(3, 2).level(2)
        slice(3, 6, None)
        """
        self._check_level(level)
        start = sum(self.sizes[: level - 1])
        return slice(start, start + self.sizes[level - 1])

    @cached_property
    def words(self) -> tuple[tuple[int, ...], ...]:
        """The Lyndon words, in order, each a tuple of letter indices."""
        words: list[tuple[int, ...]] = []
        for level in range(1, self.depth + 1):
            flat = lyndon.lyndon_words(self.width, level)
            digits = np.stack([flat // self.width ** (level - 1 - k) % self.width for k in range(level)], axis=-1)
            words.extend(map(tuple, digits.tolist()))
        return tuple(words)

    @cached_property
    def brackets(self) -> Int64[np.ndarray, "lie 2"]:
        """Positions of the left and right factor of every bracket; -1, -1 for letters."""
        brackets = np.full((self.dimension, 2), -1, dtype=np.int64)
        starts = np.array([0, 0, *np.cumsum(self.sizes)])
        for level in range(2, self.depth + 1):
            length, left, right = lyndon.standard_factorisation(self.width, level)
            brackets[self.level(level)] = np.stack([starts[length] + left, starts[level - length] + right], axis=-1)
        brackets.flags.writeable = False
        return brackets

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for every coordinate, such as "[heart_rate, [heart_rate, time]]"."""
        labels = list(self.letters)
        for left, right in self.brackets[self.width :].tolist():
            labels.append(f"[{labels[left]}, {labels[right]}]")
        return tuple(labels)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in reversed(list(enumerate(self.labels)))}

    def index(self, label: str) -> int:
        """Position of the coordinate with this label.

        >>> Basis(("a", "b"), 2).index("[a, b]")
        2
        """
        if label not in self._places:
            some = ", ".join(repr(known) for known in self.labels[: self.width + 2])
            raise BasisError(f"There is no coordinate {label!r} in {self!r}.", f"See .labels, which start with {some}.")
        return self._places[label]

    def expand(self, bracket: Bracket) -> tuple[int, dict[int, int]]:
        """Expand a nested bracket of letters: its degree, and its coefficients by flat word.

        There are no coefficients if the degree exceeds the depth.

        >>> Basis(("a", "b"), 3).expand(("b", "a"))  # 10 = ba, 01 = ab, in base 2
        (2, {2: 1, 1: -1})
        """
        if isinstance(bracket, str):
            if bracket not in self.letters:
                raise BasisError(f"There is no letter {bracket!r} in {self!r}.")
            return 1, {self.letters.index(bracket): 1}
        (degree_u, u), (degree_v, v) = (self.expand(part) for part in bracket)
        words: dict[int, int] = {}
        if degree_u + degree_v <= self.depth:
            for word_u, amount_u in u.items():
                for word_v, amount_v in v.items():
                    uv, vu = word_u * self.width**degree_v + word_v, word_v * self.width**degree_u + word_u
                    words[uv] = words.get(uv, 0) + amount_u * amount_v
                    words[vu] = words.get(vu, 0) - amount_u * amount_v
        return degree_u + degree_v, words

    def coordinates(self, bracket: Bracket) -> Int64[np.ndarray, "lie"]:
        """Exact coordinates of a nested bracket of letters, Lyndon or not; zero if its degree exceeds the depth.

        >>> Basis(("a", "b"), 3).coordinates(("b", ("a", "b"))).tolist()
        [0, 0, 0, 0, -1]
        """
        level, words = self.expand(bracket)
        coordinates = np.zeros(self.dimension, dtype=np.int64)
        if level <= self.depth:
            projection = self.projection(level)
            amounts = np.array([words.get(word, 0) for word in projection.cols.tolist()], dtype=np.int64)
            np.add.at(coordinates[self.level(level)], projection.rows, projection.coefficients * amounts)
        return coordinates

    def positions(self, letters: Int[np.ndarray, "*rows letter"]) -> Int64[np.ndarray, "*rows _"]:
        """Positions in this basis of the coordinates of the basis over some of its letters, in their order.

        A Lyndon word over some of the letters is one over all of them, with the same bracket.

        Args:
            letters: Numbers of letters in increasing order; with leading axes, many such sets.

        >>> basis = Basis(("a", "b", "c"), 2)
        >>> basis.positions(np.array([0, 2])), basis.labels[4]
        (array([0, 2, 4]), '[a, c]')
        """
        some = Basis.of_width(letters.shape[-1], self.depth)
        parts = [letters.astype(np.int64)]
        for level in range(2, self.depth + 1):
            flat = letters[..., some.digits(level)] @ self.width ** np.arange(level)[::-1]
            parts.append(np.searchsorted(lyndon.lyndon_words(self.width, level), flat) + self.level(level).start)
        return np.concatenate(parts, axis=-1)

    def digits(self, level: int) -> Int64[np.ndarray, "_ digit"]:
        """The letters of the words of one level.

        >>> Basis.of_width(3, 2).digits(2).tolist()
        [[0, 1], [0, 2], [1, 2]]
        """
        words = lyndon.lyndon_words(self.width, level)
        return words[:, None] // self.width ** np.arange(level)[::-1] % self.width

    def truncate(self, depth: int) -> "Basis":
        """The same letters to a smaller depth; its coordinates are the first ones of this basis.

        >>> Basis.of_width(3, 4).truncate(2) == Basis.of_width(3, 2)
        True
        """
        self._check_level(depth)
        return Basis(self.letters, depth)

    def expansion(self, level: int) -> SparseMap:
        """The map from bracket coordinates of one level (columns) to flat words in C order (rows).

        >>> Basis.of_width(2, 2).expansion(2).as_matrix().ravel().tolist()  # words 11, 12, 21, 22
        [0, 1, -1, 0]
        """
        self._check_level(level)
        return lyndon.expansion(self.width, level)

    def projection(self, level: int) -> SparseMap:
        """The map from flat words of one level (columns, Lyndon words only) to bracket coordinates (rows).

        It is a left inverse of the expansion.

        >>> Basis.of_width(2, 2).projection(2).as_matrix().tolist()
        [[0, 1, 0, 0]]
        """
        self._check_level(level)
        return lyndon.projection(self.width, level)

    def _check_level(self, level: int) -> None:
        if not 1 <= level <= self.depth:
            raise BasisError(f"{self!r} has levels 1 to {self.depth}, not {level}.")

    def __repr__(self) -> str:
        names = self.letters if self.width <= 8 else (*self.letters[:6], "...", self.letters[-1])
        return f"Basis(letters={', '.join(names)}; width {self.width}, depth {self.depth})"


def common_basis(bases: Iterable[Basis]) -> Basis:
    """The basis that all operands share.

    Raises:
        BasisError: If the operands have different bases; the message says how they differ.
    """
    first, *others = bases
    for other in others:
        if other.letters != first.letters:
            raise BasisError(f"Elements of {first!r} and {other!r} cannot be combined: their letters differ.")
        if other.depth != first.depth:
            raise BasisError(
                f"Elements of {first!r} and {other!r} cannot be combined: their depths differ.",
                "Truncate both to the smaller depth.",
            )
    return first
