"""Runs the grid of an experiment: cells on worker processes, a ledger of finished ones, tables and figures.

It knows no experiment. An experiment subclasses `AbstractExperiment` (`abstract`), takes models and training from
`recipes` if they suit it, and formats numbers with `tables`.
"""
