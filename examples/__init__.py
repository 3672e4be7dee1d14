"""Short programs that run: `python -m examples.quickstart` and others, from the root of the repository."""
