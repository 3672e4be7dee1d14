"""scikit-learn's input checks; the first module of this package to import it, so it says what to install."""

from typing import Any

try:
    from sklearn.utils import _set_output, validation
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "logcde.estimators needs scikit-learn, which is not installed. Install it with: pip install 'logcde[sklearn]'",
        name=error.name,
    ) from error

# `Any`, because the types that checkers infer from scikit-learn's default values are too narrow.
check_array: Any = validation.check_array
column_or_1d: Any = validation.column_or_1d
validate_data: Any = validation.validate_data
check_feature_names_in: Any = validation._check_feature_names_in


def container_of(transformer: Any) -> str:
    """What `transform` is to return: "default", "pandas" or "polars", by `set_output` or the configuration."""
    return _set_output._get_output_config("transform", transformer)["dense"]
