"""The experiments of the paper and beyond it: `python -m experiments --help`, from the root of the repository.

`runner` runs the grid of an experiment and keeps its results; every other package is one experiment, listed in
`registry`. `archive` holds facts about the data sets of the UEA archive.
"""
