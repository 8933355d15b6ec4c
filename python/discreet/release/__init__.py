"""Released rows with their guarantee, their plots and their files."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.release.comparison import Comparison as Comparison
    from discreet.release.kept import KeptShare as KeptShare
    from discreet.release.provenance import Provenance as Provenance
    from discreet.release.release import Release as Release
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "release.comparison": "Comparison",
            "release.kept": "KeptShare",
            "release.provenance": "Provenance",
            "release.release": "Release",
        },
    )
