"""Ordered products of many group elements: a tree for arbitrary ranges, two stacks for sliding windows.

Elements are log-signatures at depth two and tensors at other depths, as in `logcde.kernels.depth2` and `.depth_n`; an
element of zeros is the unit in both.
"""

import numpy as np

from logcde.kernels import depth2, depth_n
from logcde.kernels._jit import kernel


@kernel
def combine(left, right, width, depth, out):
    """Write the product of two elements to `out`, which is neither of them."""
    if depth == 2:
        depth2.product(left, right, width, out)
    else:
        depth_n.product(left, right, width, depth, out)


@kernel
def grow(nodes, first, last, width, depth):
    """Update all nodes above leaves `first` to `last`. Leaf l is at `len(nodes) / 2 + l`, the root at 1."""
    low = (nodes.shape[0] // 2 + first) // 2
    high = (nodes.shape[0] // 2 + last - 1) // 2
    while low >= 1:
        for node in range(low, high + 1):
            combine(nodes[2 * node], nodes[2 * node + 1], width, depth, nodes[node])
        low //= 2
        high //= 2


@kernel
def join(first, last, queries, nodes, width, depth, out):
    """Write the product of left end, leaves and right end, in this order, of queries `first` to `last`."""
    left, low, high, right = queries
    size = nodes.shape[1]
    front = np.empty(size)
    back = np.empty(size)
    spare = np.empty(size)
    for q in range(first, last):
        front[:] = left[q]
        back[:] = right[q]
        a = nodes.shape[0] // 2 + low[q]
        b = nodes.shape[0] // 2 + high[q]
        while a < b:
            if a % 2 == 1:
                combine(front, nodes[a], width, depth, spare)
                front[:] = spare
                a += 1
            if b % 2 == 1:
                b -= 1
                combine(nodes[b], back, width, depth, spare)
                back[:] = spare
            a //= 2
            b //= 2
        combine(front, back, width, depth, out[q])


@kernel
def slide(pieces, low, high, width, depth, out):
    """Write the product of pieces `low[w]` to `high[w]` for every window w; neither bound may decrease.

    Two stacks: the products of each piece with all that follow it up to `middle`, and one product of all after that.
    When the first stack is empty, the second is turned over into it. Each piece takes part in at most three products.
    """
    count, size = pieces.shape
    suffix = np.zeros((count + 1, size))
    back = np.zeros(size)
    spare = np.empty(size)
    middle = 0
    reached = 0
    for w in range(low.size):
        while reached < high[w]:
            combine(back, pieces[reached], width, depth, spare)
            back[:] = spare
            reached += 1
        if low[w] >= middle:
            middle = reached
            suffix[middle] = 0.0
            for piece in range(middle - 1, low[w] - 1, -1):
                combine(pieces[piece], suffix[piece + 1], width, depth, suffix[piece])
            back[:] = 0.0
        combine(suffix[low[w]], back, width, depth, out[w])
