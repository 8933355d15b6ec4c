"""What is published: rows with their guarantee, their pictures, and the files they are written to."""

from discreet.release.release import Release

__all__ = ["Release"]
