"""Releases of confirmed and estimated counts: the column of methods, and rows of a small error."""

import numpy as np
import pyarrow.parquet
import pytest
from released import counted, ranked

from discreet import Release
from discreet.errors import InputError, ParameterError
from discreet.formats import RELEASED
from discreet.release.release import changed

CONFIRMED = np.array([True, False, False])


def both(**changes):
    return counted(items=["a", "b", "c"], confirmed=CONFIRMED, **changes)


def test_each_row_states_its_method():
    release = both()
    assert release.methods == ["confirmed", "estimated", "estimated"]
    assert [name for name, _, _ in release.columns] == ["item", "count", "sigma", "method"]
    assert counted(items=["a"]).methods == []


def test_a_part_keeps_the_methods_of_its_rows():
    assert both()[1:].methods == ["estimated", "estimated"]
    assert both().head(1).methods == ["confirmed"]


def test_a_plot_and_a_report_mark_estimates(tmp_path):
    pytest.importorskip("matplotlib")
    axes = both().plot()
    assert [bar.get_alpha() is None for bar in axes.patches] == CONFIRMED.tolist()
    assert "pale: estimated" in axes.get_xlabel()
    both().write(tmp_path / "report.html")
    assert "An estimated count follows from" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize("form", RELEASED)
def test_every_format_keeps_the_methods(tmp_path, form):
    path = tmp_path / f"rows.{form}"
    both().write(path, certificate=True)
    read = Release.read(path)
    assert read.confirmed.tolist() == CONFIRMED.tolist()
    assert read.digest == both().digest
    counted(items=["a"]).write(path, certificate=True)
    assert Release.read(path).confirmed is None


def test_methods_are_a_column_of_frames():
    table = both().to_arrow()
    assert table.column("method").to_pylist() == ["confirmed", "estimated", "estimated"]
    empty = counted(items=[], confirmed=np.zeros(0, bool)).to_arrow()
    assert empty.schema.field("method").type == pyarrow.string()


@pytest.mark.parametrize(
    ("method", "match"),
    [("guessed", "its methods are not confirmed or estimated"), ("confirmed", "not those of its certificate")],
)
def test_a_changed_method_is_noticed(tmp_path, method, match):
    path = tmp_path / "rows.csv"
    both().write(path, certificate=True)
    path.write_text(path.read_text().replace("estimated", method))
    with pytest.raises(InputError, match=match):
        Release.read(path)


def test_a_report_shows_the_methods(tmp_path):
    both().write(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("estimated</td>") == 2
    counted(items=["a"]).write(tmp_path / "report.html")
    assert "method" not in (tmp_path / "report.html").read_text()


def test_rows_within_an_error_are_a_part():
    release = both(sigmas=np.array([3.0, 20.0, 21.0]))
    assert release.counts.tolist() == [300, 200, 100]
    part = release.within(0.1)
    assert part.items == ["a", "b"]
    assert part.methods == ["confirmed", "estimated"]
    assert part.guarantee == release.guarantee
    assert part.part_of == 3
    assert release.within(0.21).items == ["a", "b", "c"]
    assert release.within(1e-6).items == []


def test_a_count_below_zero_is_within_no_error():
    release = both(counts=np.array([9, 0, -50]), sigmas=np.full(3, 1.0))
    assert release.within(1).items == ["a"]


def test_a_sum_below_zero_may_be_within_an_error():
    numbers = {"counts": np.array([9.0, 0.0, -50.0]), "sigmas": np.full(3, 1.0)}
    release = changed(counted(items=["a", "b", "c"]), kind="sums", **numbers)
    assert (release.within(0.2).items, release.within(0.1).items) == (["a", "c"], ["c"])


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "0.1", True, None, 10**7])
def test_an_error_out_of_range_is_refused(wrong):
    with pytest.raises(ParameterError, match="relative_error must be a number above 0"):
        both().within(wrong)


def test_ranks_have_no_error():
    with pytest.raises(ParameterError, match="no counts"):
        ranked().within(0.1)
