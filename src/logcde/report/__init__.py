"""The record of a training run, `run.json`, and the page that shows it to people."""
