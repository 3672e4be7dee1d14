"""Where compiled programs are kept between processes, if the user names a folder: `LOGCDE_CACHE_DIR`.

Numba keeps kernels anyway, next to their source or in the user's cache directory. XLA keeps nothing by itself, and most
of the first seconds of a process are its compilations. Its programs are kept in a folder that the user chose, never in
another one: they are as many as there are shapes and are not removed by themselves, and whoever can write to the folder
decides what later processes run.
"""

import os
from pathlib import Path
from typing import Any

VARIABLE = "LOGCDE_CACHE_DIR"


def use_chosen_folder() -> None:
    """Keep kernels and programs in the chosen folder, if there is one. Settings of Numba and JAX take precedence."""
    name = os.environ.get(VARIABLE)
    if not name:
        return
    folder = Path(name).expanduser().absolute()
    import jax
    from jax.experimental.compilation_cache import compilation_cache
    from numba.core import config

    settings: Any = config
    if not settings.CACHE_DIR:
        settings.CACHE_DIR = str(folder / "kernels")
    if programs_folder() is None:
        jax.config.update("jax_compilation_cache_dir", str(folder / "programs"))
        # Without these two, JAX keeps only programs that took longer than a second: few of those of a small model.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        compilation_cache.reset_cache()  # JAX decides at its first program, which may have been compiled already


def programs_folder() -> str | None:
    """Where JAX keeps programs, None if nowhere."""
    import jax

    return jax.config.values["jax_compilation_cache_dir"]
