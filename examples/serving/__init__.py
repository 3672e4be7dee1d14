"""A ward on real servers: a feed simulator, two workers that share it, and the page. `python -m examples.serving`."""
