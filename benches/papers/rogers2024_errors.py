"""Share of released counts that are more than 10 % off the true count (Rogers 2024, Section 5)."""

import figures
from contest import contest

SHOWN = ["private count release", "plume p95", "plume p99", "plume p95, all"]
HEADER = ["table", "rho", *SHOWN]


def measure(small):
    return {name: contest(data, 1 if small else 10) for name, data in figures.tables(small)}


def rows(found):
    for name, rhos in found.items():
        for rho, row in rhos.items():
            yield [name, rho, *(f"{100 * row[shown][1]:.1f} %" for shown in SHOWN)]


def draw(figure, found):
    for axes, (name, rhos) in zip(figure.subplots(1, len(found), sharey=True), found.items(), strict=True):
        for shown in SHOWN:
            axes.plot([float(rho) for rho in rhos], [100 * row[shown][1] for row in rhos.values()], label=shown)
        axes.set_title(name)
        axes.set_xlabel("rho")
    figure.axes[0].set_ylabel("counts more than 10 % off, %")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
