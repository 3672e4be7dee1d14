"""The command line. A command imports what it needs when it runs, so `logcde --help` does not import JAX."""

from logcde.cli.main import main as main
