"""The record of a training run, `run.json`, and its HTML report."""
