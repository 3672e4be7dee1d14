"""`python -m logcde` runs the same command line as `logcde`."""

from logcde.cli import main

main()
