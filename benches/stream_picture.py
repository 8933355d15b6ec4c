"""Script that draws docs/streams.png: released running counts of a synthetic year, with their noise."""

from pathlib import Path

import numpy as np

import discreet as dp
from discreet.release import plot

PAGES = {"home": 60, "help": 12, "news": 25, "jobs": 4}


def main() -> None:
    """Draw the picture."""
    random = np.random.default_rng(7)
    stream = dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=365).start()
    seen: dict[str, list[tuple[int, int, float]]] = {}
    for day in range(1, 366):
        rates = {page: rate * (day > 200 or page != "jobs") for page, rate in PAGES.items()}
        events = [[page] for page, rate in rates.items() for _ in range(random.poisson(rate / 10))]
        release = stream.step(events)
        for (page, count), sigma in zip(release, release.sigmas, strict=True):
            seen.setdefault(page, []).append((day, count, float(sigma)))
    axes = plot.running(seen, title=release.promise)
    axes.figure.savefig(Path(__file__).parent.parent / "docs" / "streams.png", dpi=110)


if __name__ == "__main__":
    main()
