"""The command `discreet`: rows go to standard output, all other text to standard error."""

from discreet.cli.command import main

__all__ = ["main"]
