"""Arrays and options of estimators are checked at run time, as those of other packages are."""

from jaxtyping import install_import_hook

with install_import_hook(["logcde.estimators"], "beartype.beartype"):
    import logcde.estimators  # noqa: F401
