"""Counts by several columns: country and page, the top pages of each country, categories and times as items."""

import pytest
from command import discreet
from made import COUNTRIES, outliers, polars, truth, visits

import discreet as dp


@pytest.fixture(scope="module")
def log():
    return visits(seed=2)


def test_users_are_counted_by_country_and_page(log):
    release = dp.count(log, user="user", item=["country", "page"], rho=0.5, delta=1e-6)
    assert outliers(release, truth(log, "country", "page")) == []
    frame = release.to_polars()
    assert frame.columns == ["country", "page", "count", "sigma", "method"]
    assert set(frame["country"]) == set(COUNTRIES)
    assert release.guarantee == dp.Guarantee(rho=0.5, delta=1e-6)
    assert release["DE", "/page/00"] == dict(release)["DE", "/page/00"]


def test_the_top_ten_of_each_country_come_out_of_one_release(log, tmp_path):
    polars.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    out = tmp_path / "pages.parquet"
    columns = ["--user", "user", "--item", "country", "--item", "page"]
    code, _, err = discreet("count", tmp_path / "log.parquet", *columns, "--rho", "0.5", "--delta", "1e-6", "-o", out)
    assert (code, "0.5-zCDP per user" in err) == (0, True)
    top = polars.read_parquet(out).sort("count", descending=True).group_by("country").head(10)
    expected = truth(log, "country", "page")
    for country in COUNTRIES:
        pages = top.filter(country=country)["page"].to_list()
        tenth = sorted((n for (place, _), n in expected.items() if place == country), reverse=True)[9]
        assert len(pages) == 10
        assert all(expected[country, page] > 0.5 * tenth for page in pages)


def test_categories_are_items_as_they_are(log):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(log).astype({"page": "category", "country": "category"})
    release = dp.count(frame, user="user", item=["country", "page"], l0=40, rho=0.5, delta=1e-6)
    assert outliers(release, truth(log, "country", "page")) == []
    frame = polars.DataFrame(log).cast({"page": polars.Categorical})
    one = dp.count(frame, user="user", item="page", rho=1, delta=1e-6)
    assert outliers(one, truth(log, "page")) == []
    assert one.to_polars()["page"].dtype == polars.String


def test_times_are_items_and_keep_their_type(log, tmp_path):
    hours = polars.DataFrame(log).with_columns(polars.col("ts").dt.truncate("12h"))
    hours.write_parquet(tmp_path / "log.parquet")
    asked = ["--user", "user", "--item", "ts", "--rho", "0.5", "--delta", "1e-6", "-f", "json"]
    code, out, _ = discreet("count", tmp_path / "log.parquet", *asked)
    release = dp.count(hours, user="user", item="ts", rho=0.5, delta=1e-6)
    assert code == 0
    assert '"2026-02-01T12:00:00"' in out
    assert release.to_polars()["ts"].dtype == polars.Datetime("us")
    expected = {when.isoformat(): n for when, n in truth(hours, "ts").items()}
    assert outliers(release, expected) == []
