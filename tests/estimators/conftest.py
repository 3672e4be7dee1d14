"""Arrays are checked at run time, as in other packages; constructors of estimators are not: they take anything."""

from jaxtyping import install_import_hook

CHECKED = ["answers", "architectures", "choosing", "forecasting", "inference", "reading", "saving", "training"]
with install_import_hook([f"logcde.estimators.{name}" for name in CHECKED], "beartype.beartype"):
    import logcde.estimators  # noqa: F401
