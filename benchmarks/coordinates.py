"""Log-signatures of different libraries in one basis: the coordinates of Lyndon brackets.

Libraries differ from depth 3 on: brackets of Lyndon words, Lyndon words of the tensor logarithm, or a Hall basis.
"""

import abc
from functools import cache

import numpy as np

from logcde.algebra import Basis, Bracket


class AbstractCoordinates(abc.ABC):
    """The basis in which a library returns log-signatures."""

    @abc.abstractmethod
    def to_brackets(self, logsigs: np.ndarray, basis: Basis) -> np.ndarray:
        """Convert log-signatures (..., lie) to coordinates of Lyndon brackets."""


class LyndonBrackets(AbstractCoordinates):
    """Lyndon basis with standard bracketing, as in this library."""

    def to_brackets(self, logsigs: np.ndarray, basis: Basis) -> np.ndarray:
        """Unchanged."""
        return logsigs


class LyndonWords(AbstractCoordinates):
    """Coefficients of the Lyndon words in the expanded logarithm."""

    def to_brackets(self, logsigs: np.ndarray, basis: Basis) -> np.ndarray:
        """Solve the triangular system between words and brackets, level by level."""
        levels = []
        for level in range(1, basis.depth + 1):
            projection = basis.projection(level)
            words = np.unique(projection.cols)
            matrix = np.zeros((basis.sizes[level - 1], words.size))
            matrix[projection.rows, np.searchsorted(words, projection.cols)] = projection.coefficients
            levels.append(logsigs[..., basis.level(level)] @ matrix.T)
        return np.concatenate(levels, axis=-1)


class HallBrackets(AbstractCoordinates):
    """The Hall basis of RoughPy, which keeps the left factor as short as possible."""

    def to_brackets(self, logsigs: np.ndarray, basis: Basis) -> np.ndarray:
        """Rewrite every Hall bracket in the Lyndon basis."""
        return logsigs @ _hall_to_lyndon(basis)


@cache
def _hall_to_lyndon(basis: Basis) -> np.ndarray:
    return np.array([basis.coordinates(bracket) for bracket in hall_brackets(basis)], dtype=float)


def hall_brackets(basis: Basis) -> list[Bracket]:
    """The brackets of the Hall basis of RoughPy over the letters of `basis`, in order.

    >>> hall_brackets(Basis(("a", "b"), 3))
    ['a', 'b', ('a', 'b'), ('a', ('a', 'b')), ('b', ('a', 'b'))]
    """
    brackets: list[Bracket] = list(basis.letters)
    left_parent = [-1] * basis.width
    ends = [0, basis.width]
    for degree in range(2, basis.depth + 1):
        for short in range(1, degree // 2 + 1):
            for left in range(ends[short - 1], ends[short]):
                for right in range(max(left + 1, ends[degree - short - 1]), ends[degree - short]):
                    if left_parent[right] <= left:
                        brackets.append((brackets[left], brackets[right]))
                        left_parent.append(left)
        ends.append(len(brackets))
    return brackets


def difference(logsigs: np.ndarray, reference: np.ndarray, sizes: tuple[int, ...]) -> float:
    """Largest difference of any coordinate, relative to the largest coordinate of the reference in its level.

    >>> difference(np.array([[1.0, 2.0, 5.0]]), np.array([[1.0, 4.0, 5.0]]), (2, 1))
    0.5
    """
    largest, start = 0.0, 0
    for size in sizes:
        level = slice(start, start + size)
        scale = np.abs(reference[:, level]).max(initial=0.0) or 1.0
        largest = max(largest, float(np.abs(logsigs[:, level] - reference[:, level]).max(initial=0.0) / scale))
        start += size
    return largest
