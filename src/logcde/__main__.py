"""`python -m logcde`: the same as `logcde`."""

from logcde.cli import main

main()
