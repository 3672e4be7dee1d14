"""The study that the estimators' defaults come from: learners and their settings, validated on training parts only."""
