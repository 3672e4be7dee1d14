"""Coupled sinusoids, learnt in one observation regime and tested in all (`sec:sinusoid`, `app:sinusoid`)."""
