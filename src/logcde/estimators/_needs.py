"""Says what to install if scikit-learn is not there."""

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "logcde.estimators needs scikit-learn, which is not installed. Install it with: pip install 'logcde[sklearn]'",
        name=error.name,
    ) from error
