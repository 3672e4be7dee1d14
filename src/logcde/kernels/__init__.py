"""The few hot loops, compiled by Numba for the CPU.

Kernels take plain arrays, grouped into the records of `logcde.kernels.records`. They know nothing of streams, bases or
threads. Each is serial and releases the GIL; callers spread the work over cores with `logcde.kernels.threads`. Another
compiled backend can replace any of them by taking the same arrays.

A group element is represented in one of two ways. At depth two it is the log-signature itself: increments, then areas
in the order of the Lyndon basis. At any other depth it is the levels 1..N of the tensor, end to end, without the unit,
and words are read backwards (the last letter varies slowest), so that a factor with few letters touches few contiguous
rows.
"""
