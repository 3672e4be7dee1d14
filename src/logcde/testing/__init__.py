"""What every model must do, as a function that anyone can call on theirs."""

from logcde.errors import CheckFailed as CheckFailed
from logcde.testing.check import check_model as check_model
