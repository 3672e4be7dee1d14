"""Every test runs in double precision, with strict promotion and with array types checked at run time."""

import jax
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")
# Kernels are left out: Numba compiles their plain Python source.
CHECKED = [
    "logcde.algebra",
    "logcde.streams",
    "logcde.embedding",
    "logcde.paths",
    "logcde.flows",
    "logcde.models",
    "logcde.train",
]
with install_import_hook(CHECKED, "beartype.beartype"):
    import logcde  # noqa: F401
