"""The contract of models as a public check, for models of your own."""

from logcde.errors import CheckFailed as CheckFailed
from logcde.testing.check import check_model as check_model
