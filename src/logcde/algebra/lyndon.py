"""Lyndon words, their standard bracketing, and the exact maps between words and brackets.

Coordinates of the free Lie algebra of the paper's section "Tensor algebra, signatures, and log-signatures". A word of
length `level` over `width` letters is the number with its letters as digits, so numeric order is lexicographic order
and everything below is arithmetic on whole levels at once. All results depend on (width, level) only and are cached.
"""

from functools import cache

import numpy as np

from logcde.algebra.sparse import SparseMap, inverse_unitriangular, ragged


def witt_dimensions(width: int, depth: int) -> tuple[int, ...]:
    """Dimension of each level 1..depth of the free Lie algebra over `width` letters (Witt's formula).

    >>> witt_dimensions(3, 4)
    (3, 3, 8, 18)
    """
    sizes: list[int] = []
    for level in range(1, depth + 1):
        # Every word is a power of a rotation of exactly one Lyndon word: width**n = sum of k * size(k) over k | n.
        shorter = sum(k * sizes[k - 1] for k in range(1, level) if level % k == 0)
        sizes.append((width**level - shorter) // level)
    return tuple(sizes)


@cache
def lyndon_words(width: int, level: int) -> np.ndarray:
    """Lyndon words of one length, which are below all their rotations, as flat indices in lexicographic order."""
    words = np.arange(width**level)
    lyndon = np.ones(words.size, dtype=bool)
    for shift in range(1, level):
        head, tail = np.divmod(words, width ** (level - shift))
        lyndon &= words < tail * width**shift + head
    found = np.flatnonzero(lyndon)
    found.flags.writeable = False
    return found


@cache
def standard_factorisation(width: int, level: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factorise each Lyndon word w = uv of one level >= 2.

    v is the longest proper suffix that is a Lyndon word; u is then one as well.

    Returns:
        The length of each u, and the positions of u and v among the Lyndon words of their lengths.
    """
    words = lyndon_words(width, level)
    length, left, right = (np.zeros(words.size, dtype=np.int64) for _ in range(3))
    for cut in range(level - 1, 0, -1):
        prefix, suffix = np.divmod(words, width ** (level - cut))
        suffixes = lyndon_words(width, level - cut)
        place = np.minimum(np.searchsorted(suffixes, suffix), suffixes.size - 1)
        # Earlier cuts come later in the loop and overwrite: the longest suffix wins.
        chosen = np.flatnonzero(suffixes[place] == suffix) if suffixes.size else np.zeros(0, dtype=np.int64)
        length[chosen] = cut
        left[chosen] = np.searchsorted(lyndon_words(width, cut), prefix[chosen])
        right[chosen] = place[chosen]
    return length, left, right


@cache
def expansion(width: int, level: int) -> SparseMap:
    """The map from bracket coordinates of one level (columns) to words (rows): P_w = P_u P_v - P_v P_u for w = uv."""
    size = lyndon_words(width, level).size
    shape = (width**level, size)
    if level == 1:
        return SparseMap.identity(width)
    length, left, right = standard_factorisation(width, level)
    entries = []
    for cut in range(1, level):
        brackets = np.flatnonzero(length == cut)
        starts_u, words_u, coefficients_u = expansion(width, cut).columns()
        starts_v, words_v, coefficients_v = expansion(width, level - cut).columns()
        counts_u, counts_v = np.diff(starts_u)[left[brackets]], np.diff(starts_v)[right[brackets]]
        group, within = ragged(counts_u * counts_v)
        u = starts_u[left[brackets]][group] + within // counts_v[group]
        v = starts_v[right[brackets]][group] + within % counts_v[group]
        coefficients = coefficients_u[u] * coefficients_v[v]
        entries.append((words_u[u] * width ** (level - cut) + words_v[v], brackets[group], coefficients))
        entries.append((words_v[v] * width**cut + words_u[u], brackets[group], -coefficients))
    return SparseMap.collect(*(np.concatenate(part) for part in zip(*entries, strict=True)), shape=shape)


@cache
def projection(width: int, level: int) -> SparseMap:
    """The map from flat words of one level (columns, Lyndon words only) to bracket coordinates (rows).

    P_w is w plus larger words of the same letters, so a unitriangular integer matrix maps the coordinates of a Lie
    element to its coefficients at Lyndon words. This is its inverse.
    """
    words, full = lyndon_words(width, level), expansion(width, level)
    if words.size == 0:
        return SparseMap.collect([], [], [], (0, width**level))
    place = np.minimum(np.searchsorted(words, full.rows), words.size - 1)
    off_diagonal = (words[place] == full.rows) & (place != full.cols)
    strict = SparseMap.collect(
        place[off_diagonal], full.cols[off_diagonal], -full.coefficients[off_diagonal], (words.size, words.size)
    )
    inverse = inverse_unitriangular(strict)
    return SparseMap.collect(inverse.rows, words[inverse.cols], inverse.coefficients, (words.size, width**level))
