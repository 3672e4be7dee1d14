"""The command line. It imports what a command needs when that command is run, and nothing before."""

from logcde.cli.main import main as main
