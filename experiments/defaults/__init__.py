"""Default estimators beside the methods that a person would take instead: accuracy, log loss and seconds."""
