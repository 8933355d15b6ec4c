"""Released rows with their guarantee, their plots and their files."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.release.comparison import Comparison
    from discreet.release.kept import KeptShare
    from discreet.release.provenance import Provenance
    from discreet.release.release import Release
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "release.comparison": "Comparison",
            "release.kept": "KeptShare",
            "release.provenance": "Provenance",
            "release.release": "Release",
        },
    )

__all__ = ["Comparison", "KeptShare", "Provenance", "Release"]
