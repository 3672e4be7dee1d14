"""Some of the items of each group, drawn without replacement, in one pass over them."""

import numpy as np

from logcde.kernels._jit import kernel


@kernel
def choose(offsets, group, groups, share, chance, out):
    """Mark round(share * n) items, one at least, of the n items of each row and group.

    An item is taken with the probability (still to take) / (still to come), which makes every subset of this size
    equally likely. `chance` has a uniform number in [0, 1) for each item.
    """
    coming = np.empty(groups, np.int64)
    wanted = np.empty(groups, np.int64)
    for row in range(len(offsets) - 1):
        coming[:] = 0
        for item in range(offsets[row], offsets[row + 1]):
            coming[group[item]] += 1
        for k in range(groups):
            wanted[k] = min(coming[k], max(1, np.int64(np.rint(share * coming[k]))))
        for item in range(offsets[row], offsets[row + 1]):
            k = group[item]
            taken = chance[item] * coming[k] < wanted[k]
            out[item] = taken
            wanted[k] -= taken
            coming[k] -= 1
