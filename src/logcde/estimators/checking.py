"""The checks of scikit-learn, without the types that are guessed from its defaults."""

from typing import Any

from sklearn.utils import validation

check_array: Any = validation.check_array
column_or_1d: Any = validation.column_or_1d
validate_data: Any = validation.validate_data
