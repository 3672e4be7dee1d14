"""Sums of decision trees, evaluated row by row."""

import numpy as np

from logcde.kernels._jit import kernel


@kernel
def leaf_of(row, node, feature, threshold, left, right, missing_left):
    """The leaf that a row reaches from a node: left where a feature is at most the threshold."""
    while feature[node] >= 0:
        x = row[feature[node]]
        goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
        node = left[node] if goes_left else right[node]
    return node


@kernel
def add_trees(first, last, rows, roots, output, feature, threshold, left, right, missing_left, value, out):
    """Add the leaves' values of all trees, from the tree's first output on."""
    for series in range(first, last):
        for tree in range(len(roots)):
            leaf = leaf_of(rows[series], roots[tree], feature, threshold, left, right, missing_left)
            for k in range(value.shape[1]):
                out[series, output[tree] + k] += value[leaf, k]
