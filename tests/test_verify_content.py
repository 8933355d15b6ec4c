"""`verify` accepts a file only if it holds the rows and the header of its certificate, and nothing else."""

import json

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InputError
from discreet.formats import RELEASED

LOG = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}


@pytest.fixture(scope="module")
def release():
    return dp.count(LOG, user="user", item="page", rho=1, delta=1e-6)


def refuse(path):
    with pytest.raises(InputError):
        dp.verify(path)


def changed(content, change):
    found = json.loads(content)
    change(found)
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


CHANGES = {
    "another column": lambda found: found["rows"][0].update(exact=5000),
    "another key": lambda found: found.update(true={"home": 5000}),
    "another rho": lambda found: found.update(rho=1e-3),
    "a number as text": lambda found: found["rows"][0].update(count=str(found["rows"][0]["count"])),
    "a reordered row": lambda found: found["rows"].reverse(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_json_file_with_other_content_is_refused(tmp_path, release, name):
    path = tmp_path / "rows.json"
    release.write(path, certificate=True)
    assert dp.verify(path).digest == release.digest
    path.write_text(changed(path.read_text(), CHANGES[name]))
    refuse(path)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_key_twice_is_refused(tmp_path, release, suffix):
    path = tmp_path / f"rows.{suffix}"
    release.write(path, certificate=True)
    content = path.read_text()
    for old, new in (
        ('"page": ', '"page": "secret", "page": '),
        ("{", '{"rows": [{"page": "secret", "count": 5}],'),
    ):
        path.write_text(content.replace(old, new, 1))
        refuse(path)
        if suffix == "json":
            with pytest.raises(InputError):
                dp.Release.read(path)


def test_lines_and_parquet_with_other_columns_are_refused(tmp_path, release):
    polars = pytest.importorskip("polars")
    lines, rows = tmp_path / "rows.jsonl", tmp_path / "rows.parquet"
    for path in (lines, rows):
        release.write(path, certificate=True)
        dp.verify(path)
    lines.write_text(lines.read_text().replace("}", ', "exact": 5000}', 1))
    refuse(lines)
    polars.read_parquet(rows).with_columns(exact=5000).write_parquet(rows)
    refuse(rows)


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("flag", ["seeded", "claimed"])
def test_no_certificate_is_seeded_or_claimed(tmp_path, release, suffix, flag):
    path = tmp_path / f"rows.{suffix}"
    release.write(path, certificate=True)
    certificate = tmp_path / f"rows.{suffix}.certificate.json"
    certificate.write_text(json.dumps(json.loads(certificate.read_text()) | {flag: True}))
    refuse(path)


def test_an_interval_of_a_histogram_with_a_least_count_knows_the_raised_threshold():
    mechanism = dp.GaussianThreshold(sigma=70.7, delta=1e-2, l0=1)
    count = mechanism.threshold.value + 200
    tables = [
        dp.Histogram.from_counts(["a"], [count], l0=1, linf=1, complete=True),
        dp.Histogram.from_counts(["a"], [count + 999], l0=1, linf=1, complete=False, least=1000),
    ]
    whole, raised = (mechanism.release(table, rng=dp.testing.seeded_rng(3)) for table in tables)
    assert (whole.above, raised.above) == (mechanism.threshold.value, mechanism.threshold.value + 999)
    for end in ("low", "high"):
        assert np.array_equal(whole.interval(0.95)[end] + 999, raised.interval(0.95)[end])


def test_parquet_without_its_header_is_verified_by_its_certificate(tmp_path, release):
    polars = pytest.importorskip("polars")
    path = tmp_path / "rows.parquet"
    release.write(path, certificate=True)
    polars.read_parquet(path).write_parquet(path)
    assert dp.verify(path).digest == release.digest


def test_provenance_is_printed_escaped_and_compared_with_the_ledger(tmp_path):
    path, paper = tmp_path / "rows.csv", tmp_path / "rows.csv.certificate.json"
    views = dp.Ledger.open(tmp_path / "ledger").dataset("views", rho=1, delta=1e-6)
    asked = {"user": "user", "item": "page", "rho": 0.1, "delta": 1e-7, "budget": views}
    dp.count(LOG, **asked, label="night").write(path, certificate=True)
    content = paper.read_text()
    assert dp.verify(path, ledger=tmp_path / "ledger").provenance.label == "night"
    for label in ("\x1b[31mred\n", "\u202e" * 100_000, "<b>"):
        paper.write_text(changed(content, lambda found, label=label: found["provenance"].update(label=label)))
        text = str(dp.verify(path))
        assert "provenance" in text.splitlines()[-1]
        assert len(text) < 1_500
        assert "\x1b" not in text
        assert "\u202e" not in repr(dp.Release.read(path).provenance)
        with pytest.raises(InputError, match="another provenance"):
            dp.verify(path, ledger=tmp_path / "ledger")
    paper.write_text(changed(content, lambda found: found["provenance"].update(begun="2020-01-01T00:00:00+00:00")))
    with pytest.raises(InputError, match="another provenance"):
        dp.verify(path, ledger=tmp_path / "ledger")
    for wrong in ([], "night", {"label": 7}, {"label": None}, None):
        paper.write_text(changed(content, lambda found, wrong=wrong: found.update(provenance=wrong)))
        refuse(path)
        with pytest.raises(InputError):
            dp.Release.read(path)
