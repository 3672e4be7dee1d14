"""The letters that move in each query interval: few of many, where hundreds of channels are observed now and then.

A log-signature has no coordinate with a letter that does not move. So the kernels that compose intervals take these
letters only, numbered anew from 0 in their order: values, their counts, the others, time.
"""

import numpy as np

from logcde.kernels._jit import index, kernel

FEW = 64
"""Letters of an interval that are sorted by insertion; more of them are found in order among all letters."""


@kernel
def find_letters(q, intervals, factors, alphabet, term_letters, marks, found):
    """Write the letters that move in interval q to `found`, in increasing order, and return their number.

    `marks` has an entry for each letter, and no entry that is q before.
    """
    entry_offsets, letters, terms = factors.entry_offsets, factors.letters, factors.terms
    begin, end = intervals.begin[q], intervals.end[q]
    n = 0
    for o in range(entry_offsets[begin], entry_offsets[end]):
        k = letters[o]
        if marks[k] != q:
            marks[k] = q
            found[n] = k
            n += 1
            if alphabet.counted and k < alphabet.channels:
                c = k + alphabet.channels
                marks[c] = q
                found[n] = c
                n += 1
    if term_letters.size:
        given = False
        for e in range(begin, end):
            for c in range(terms.shape[1]):
                given = given or terms[e, c] != 0.0
        if given:
            for k in term_letters:
                if marks[k] != q:
                    marks[k] = q
                    found[n] = k
                    n += 1
    if alphabet.timed:
        marks[alphabet.width - 1] = q
        found[n] = alphabet.width - 1
        n += 1
    if n > FEW:
        n = 0
        for k in range(alphabet.width):
            if marks[k] == q:
                found[n] = k
                n += 1
        return n
    for a in range(1, n):
        k = found[a]
        b = a
        while b > 0 and found[b - 1] > k:
            found[b] = found[b - 1]
            b -= 1
        found[b] = k
    return n


@kernel
def count_letters(first, last, intervals, factors, alphabet, term_letters, counts, values):
    """Write how many letters move in the intervals `first` to `last`, and how many of them are values of channels."""
    marks, found = np.full(alphabet.width, -1), np.empty(alphabet.width, np.int32)
    for q in range(first, last):
        n = find_letters(q, intervals, factors, alphabet, term_letters, marks, found)
        below = 0
        while below < n and found[below] < alphabet.channels:
            below += 1
        counts[q] = n
        values[q] = below


@kernel
def number_letters(first, last, intervals, factors, alphabet, term_letters, offsets, letters, numbered):
    """Write the letters that move in the intervals `first` to `last`, and the number of each entry's letter there."""
    entry_offsets = factors.entry_offsets
    marks, found = np.full(alphabet.width, -1), np.empty(alphabet.width, np.int32)
    number = np.empty(alphabet.width, np.int32)
    for q in range(first, last):
        n = find_letters(q, intervals, factors, alphabet, term_letters, marks, found)
        for a in range(n):
            letters[offsets[q] + a] = found[a]
            number[found[a]] = a
        for o in range(entry_offsets[intervals.begin[q]], entry_offsets[intervals.end[q]]):
            numbered[o] = number[factors.letters[o]]


@kernel
def put_rows(first, last, rows, starts, out):
    """Copy rows `first` to `last` to where they start in `out`."""
    for r in range(first, last):
        start = index(starts[r])
        for c in range(rows.shape[1]):
            out[start + index(c)] = rows[r, c]
