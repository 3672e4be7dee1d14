"""Options of XLA that logcde's own programs are compiled with."""

import functools
import logging
import os

import jax

LOG = logging.getLogger("logcde")

SLOW_SUMS = "xla_cpu_experimental_ynn_fusion_type"
"""On CPUs, jaxlib 0.10 leaves sums over a batch to a library that takes 25 times as long as XLA's own loops."""


@functools.cache
def training_options() -> dict[str, str]:
    """Options for programs that add up the gradients of a batch; none where this XLA does not know them.

    >>> set(training_options()) <= {SLOW_SUMS}
    True
    """
    if jax.default_backend() != "cpu" or SLOW_SUMS in os.environ.get("XLA_FLAGS", ""):
        return {}
    options = {SLOW_SUMS: ""}
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except (RuntimeError, ValueError) as reason:
        LOG.debug("XLA does not know the option %s: %s", SLOW_SUMS, reason)
        return {}
    return options
