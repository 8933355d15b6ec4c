"""Releases as frames of other libraries: named columns with sigma, also for items of several columns."""

import pytest

import discreet as dp

ROWS = 4000
LOG = {"user": [*range(ROWS)], "country": ["DE"] * ROWS, "page": ["home"] * ROWS, "day": ["2026-01-26"] * ROWS}
NAMES = {"page": ["page"], ("country", "page"): ["country", "page"], None: ["day", "country", "page"]}


@pytest.fixture(params=NAMES, ids=str)
def release(request):
    if request.param is None:
        columns = {"item": ["country", "page"], "time": "day", "every": "1d"}
    else:
        columns = {"item": request.param if isinstance(request.param, str) else [*request.param]}
    return dp.count(LOG, user="user", **columns, rho=1, delta=1e-6), NAMES[request.param]


def test_pandas_and_polars_name_all_columns_of_a_release(release):
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    found, names = release
    for frame in (
        pandas.DataFrame(found),
        found.to_pandas(),
        polars.DataFrame(found),
        polars.from_dataframe(found),
        polars.from_arrow(pyarrow.table(found)),
    ):
        assert [*frame.columns] == [*names, "count", "sigma", "method"]
        assert [*frame["count"]] == found.counts.tolist()
        assert [*frame["method"]] == found.methods
        assert [*frame["sigma"]] == found.sigmas.tolist()
        for name, cell in zip(names, found.items[0] if len(names) > 1 else found.items, strict=True):
            assert str(frame[name][0]).startswith(cell)


def test_rows_have_a_key_for_each_column(release):
    found, names = release
    (row,) = found
    assert row.keys() == (*names, "count", "sigma", "method")
    cells = [row[name] for name in names]
    assert cells == [*found.items[0]] if len(names) > 1 else cells == found.items
    assert (row["count"], row["sigma"], row["item"]) == (row.count, row.sigma, found.items[0])
    assert row["method"] == row.method == found.methods[0]
    assert dict(row).keys() == {*names, "count", "sigma", "method"}
    with pytest.raises(KeyError):
        row["other"]


def test_altair_takes_the_frame_of_a_release(release):
    altair = pytest.importorskip("altair")
    found, names = release
    chart = altair.Chart(found.to_pandas()).mark_bar().encode(x="count:Q", y=f"{names[-1]}:N").to_dict()
    (rows,) = chart["datasets"].values()
    assert [*rows[0]] == [*names, "count", "sigma", "method"]


def test_great_tables_takes_the_frame_of_a_release(release):
    great_tables = pytest.importorskip("great_tables")
    found, names = release
    page = great_tables.GT(found.to_pandas()).as_raw_html()
    assert all(name in page for name in [*names, "sigma"])


def test_long_labels_and_odd_names_of_columns_are_safe_to_show(tmp_path):
    from command import BUDGET, discreet

    evil = "[red]<b>\u202epa\nge[/red]"
    log = {"user": LOG["user"], "country": LOG["country"], evil: ["x" * 8000] * ROWS}
    found = dp.count(log, user="user", item=["country", evil], rho=1, delta=1e-6)
    plain = dp.count(log, user="user", item=evil, rho=1, delta=1e-6)
    for text in (repr(found), found._repr_html_(), repr(plain), plain._repr_html_()):
        assert "\u202e" not in text
        assert "<b>\\u202e" not in text
        assert len(text) < 2000
        assert "x" * 59 + "…" in text
    assert "[red]&lt;b&gt;\\u202epa\\nge[/red]" in found._repr_html_()
    path = tmp_path / "log.csv"
    path.write_text("user,country,[red]\u202epage[/red]\n" + "".join(f"{user},DE,home\n" for user in range(ROWS)))
    options = ["--user", "user", "--item", "country", "--item", "[red]\u202epage[/red]", *BUDGET]
    code, out, _ = discreet("count", path, *options, "-f", "table")
    assert code == 0
    assert "\u202e" not in out
    assert "[red]\\u202epage[/red]" in out
