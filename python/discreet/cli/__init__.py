"""The command `discreet`: rows to stdout, everything else to stderr."""

from discreet.cli.command import main

__all__ = ["main"]
