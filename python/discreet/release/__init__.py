"""Released rows with their guarantee, their plots and their files."""

from discreet.release.release import Release

__all__ = ["Release"]
