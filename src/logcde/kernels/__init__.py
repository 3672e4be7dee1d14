"""The few hot loops, compiled by Numba for the CPU.

Kernels know plain arrays and nothing else: no streams, no bases, no threads. Each is serial and releases the GIL; who
calls them spreads the work (`logcde.kernels.threads`). Another compiled backend can replace one by taking the same
arrays.

Two representations of a group element are used. At depth two, the log-signature itself: increments, then areas in
the order of the Lyndon basis. At any other depth, the levels 1..N of the tensor one after another, without the unit,
words read backwards (the last letter varies slowest), so that a factor with few letters touches few contiguous rows.
"""
