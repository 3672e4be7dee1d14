"""scikit-learn's input checks; the first module of this package to import it, so it says what to install."""

from typing import Any

try:
    from sklearn.utils import validation
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "logcde.estimators needs scikit-learn, which is not installed. Install it with: pip install 'logcde[sklearn]'",
        name=error.name,
    ) from error

# `Any`, because the types that checkers infer from scikit-learn's default values are too narrow.
check_array: Any = validation.check_array
column_or_1d: Any = validation.column_or_1d
validate_data: Any = validation.validate_data
