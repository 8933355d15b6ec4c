"""Items that Private Count Release and Plume release, for each table and rho (Rogers 2024, Sections 4 and 5)."""

import figures
from contest import contest

SHOWN = ["private count release", "plume p95", "plume p99", "plume p95, literal", "plume p95, set union"]
ALL = [f"plume {percentile}{end}, all" for end in ("", ", set union") for percentile in ("p95", "p99")]
HEADER = ["table", "rho", *SHOWN, *ALL]


def measure(small):
    return {name: contest(data, 1 if small else 10) for name, data in figures.tables(small)}


def rows(found):
    for name, rhos in found.items():
        for rho, row in rhos.items():
            yield [name, rho, *(f"{row[shown][0]:,.0f}" for shown in [*SHOWN, *ALL])]


def draw(figure, found):
    for axes, (name, rhos) in zip(figure.subplots(1, len(found), sharey=True), found.items(), strict=True):
        for shown in SHOWN:
            axes.plot([float(rho) for rho in rhos], [row[shown][0] for row in rhos.values()], label=shown)
        axes.set_title(name)
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.set_xlabel("rho")
    figure.axes[0].set_ylabel("items released")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
