"""Array types are checked at run time, except in constructors of estimators, which scikit-learn calls with anything."""

from jaxtyping import install_import_hook

CHECKED = ["choosing", "data", "forecaster", "learners", "queries", "saving", "training"]
with install_import_hook([f"logcde.estimators.{name}" for name in CHECKED], "beartype.beartype"):
    import logcde.estimators  # noqa: F401
