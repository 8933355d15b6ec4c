"""Certificates of releases: verification, and changes that it must detect."""

import json
import math
import re

import pytest

import discreet
from discreet import (
    GaussianThreshold,
    Histogram,
    LaplaceThreshold,
    Ledger,
    Plume,
    PrivateCountRelease,
    verify,
)
from discreet.errors import InputError, LedgerError, ParameterError
from discreet.formats import RELEASED
from discreet.mechanisms import Refinement, SetUnion
from discreet.tables import UserItems
from discreet.testing import seeded_rng

ITEMS = ["=cmd()", "+1", "a,b", 'q"q', "new\nline", "é\u202e", "\u2028", "plain"]


def histogram(items=ITEMS, l0=1, count=50_000):
    return Histogram.from_counts(items, [count] * len(items), l0=l0, linf=1, complete=True)


def certificate(path):
    return path.with_name(path.name + ".certificate.json")


def written(path, mechanism=None, items=ITEMS):
    mechanism = mechanism or GaussianThreshold(sigma=5.0, delta=1e-6, l0=1)
    release = mechanism.release(histogram(items))
    release.write(path, certificate=True)
    return release


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("items", [ITEMS, [b"\xff\xfe", b"x"], [3, -4, 2**62], [2**63 + 1, 7], []])
def test_a_written_release_is_verified(tmp_path, suffix, items):
    path = tmp_path / f"rows.{suffix}"
    release = written(path, items=items)
    found = verify(path)
    assert found.digest == release.digest
    assert found.guarantee == release.guarantee
    assert found.version == discreet.__version__
    assert found.made_by == release.made_by
    assert "guarantee: 1e-06-approximate" in str(found)
    assert len(list(tmp_path.iterdir())) == 2


def test_the_digest_does_not_depend_on_the_format(tmp_path):
    release = GaussianThreshold(sigma=5.0, delta=1e-6, l0=1).release(histogram())
    for suffix in RELEASED:
        release.write(tmp_path / f"rows.{suffix}", certificate=True)
    assert len({verify(tmp_path / f"rows.{suffix}").digest for suffix in RELEASED}) == 1


def test_guarantees_in_epsilon_and_tables_are_verified(tmp_path):
    log = {"user": list(range(3000)), "item": ["x"] * 3000}
    names = {"user": "user", "item": "item"}
    path = tmp_path / "rows.json"
    for release in (
        discreet.count(log, **names, epsilon=1.0, delta=1e-6),
        discreet.count(log, **names, epsilon=1.0, delta=1e-6, l0=2),
        discreet.select(log, **names, epsilon=1.0, delta=1e-6, l0=2),
        discreet.top_k(log, **names, epsilon=1.0, delta=1e-6, k=1),
        discreet.select(log, **names, epsilon=1.0, delta=1e-6, l0=2, method="policy_laplace"),
        discreet.select(log, **names, epsilon=1.0, delta=1e-6, l0=2, method="dp_sips"),
        discreet.top_k(log, **names, epsilon=1.0, delta=1e-6, k=1, method="discover+peel", l0=2),
        discreet.Stream.recommended(rho=1.0, delta=1e-6, l0=1, horizon=9).start().step(log, **names),
        Plume(rho=1.0, delta=1e-6, m=2, m_prime=2).release(log, **names),
    ):
        release.write(path, certificate=True)
        assert verify(path).guarantee == release.guarantee


@pytest.mark.parametrize("suffix", RELEASED)
def test_changed_rows_fail_verification(tmp_path, suffix):
    path, other = tmp_path / f"rows.{suffix}", tmp_path / f"other.{suffix}"
    written(path)
    written(other, items=[*ITEMS, "more"])
    path.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match="not those"):
        verify(path)
    path.write_bytes(b"\xff damaged")
    with pytest.raises(InputError):
        verify(path)
    path.unlink()
    with pytest.raises(InputError):
        verify(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 1e-9}, "claims more"),
        ({"delta": 1e-9}, "claims more"),
        ({"unit": "event"}, "claims more"),
        ({"neighbours": "replaced"}, "claims more"),
        ({"neighbours": "other"}, "invalid field: neighbours"),
        ({"epsilon": 1e-3, "total_delta": 1e-6}, "claims more"),
        ({"made_by": "GaussianThreshold(sigma=1.0, delta=1e-06, l0=1)"}, "claims more"),
        ({"made_by": "GaussianThreshold(sigma=-1.0, delta=1e-06, l0=1)"}, "does not know"),
        ({"made_by": "Unknown(sigma=1.0)"}, "does not know"),
        ({"made_by": "GaussianThreshold"}, "does not know"),
        ({"made_by": "GaussianThreshold(sigma=open('x'), delta=1e-06, l0=1)"}, "does not know"),
        ({"made_by": "__import__('os').system('true')"}, "does not know"),
        ({"made_by": "Os(x=1)"}, "does not know"),
        ({"made_by": "(" * 500}, "does not know"),
        ({"rho": "much"}, "invalid field: rho"),
        ({"rho": True}, "invalid field: rho"),
        ({"delta": float("nan")}, "invalid field: delta"),
        ({"digest": None}, "not those"),
        ({"digest": "0" * 64}, "not those"),
        ({"columns": ["item"]}, "does not imply: measure"),
        ({"columns": None}, "invalid field: columns"),
    ],
)
def test_a_changed_certificate_is_refused(tmp_path, change, message):
    path = tmp_path / "rows.json"
    written(path)
    content = json.loads(certificate(path).read_text())
    certificate(path).write_text(json.dumps({**content, **change}))
    with pytest.raises(InputError, match=message):
        verify(path)


def test_former_names_of_parameters_are_read(tmp_path):
    for new, old, mechanism in (
        ("meet_relative_error", "spend", PrivateCountRelease(rho=1.0, delta=1e-6, meet_relative_error=True)),
        ("shared_order", "together", SetUnion.from_rho(rho=1.0, delta=1e-6, l0=3, shared_order=True)),
    ):
        path = tmp_path / f"{old}.csv"
        data = UserItems.from_pairs([1, 2], ["a", "b"]) if old == "together" else histogram()
        mechanism.release(data).write(path, certificate=True)
        content = certificate(path).read_text()
        certificate(path).write_text(content.replace(f"{new}=True", f"{old}=True"))
        assert f"{old}=True" in certificate(path).read_text()
        assert verify(path).guarantee == mechanism.guarantee


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{}", b"\xff", b"[" * 100_000])
def test_an_invalid_or_missing_certificate_is_refused(tmp_path, content):
    path = tmp_path / "rows.csv"
    written(path)
    certificate(path).write_bytes(content)
    with pytest.raises(InputError):
        verify(path)
    certificate(path).unlink()
    with pytest.raises(InputError, match="find the file that was written"):
        verify(path)


def test_missing_fields_of_a_certificate_are_named(tmp_path):
    path = tmp_path / "rows.json"
    written(path)
    content = json.loads(certificate(path).read_text())
    del content["rho"], content["digest"]
    certificate(path).write_text(json.dumps(content))
    with pytest.raises(InputError, match="lacks the fields rho, digest"):
        verify(path)
    path.unlink()
    with pytest.raises(InputError, match="no such file"):
        verify(path)


def test_seeded_and_hidden_parameters_have_no_certificate(tmp_path):
    mechanism = GaussianThreshold(sigma=5.0, delta=1e-6, l0=1)
    refined = Refinement(of=mechanism.release(histogram()), rho=0.1).release(histogram())
    for release, text in ((mechanism.release(histogram(), rng=seeded_rng(1)), "no certificate"), (refined, "not show")):
        with pytest.raises(ParameterError, match=text):
            release.write(tmp_path / "rows.csv", certificate=True)
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_must_contain_the_release(tmp_path):
    ledger = tmp_path / "ledger"
    paid = Ledger.open(ledger).dataset("views", rho=1.0, delta=1e-5)
    release = paid.release(GaussianThreshold(sigma=5.0, delta=1e-6, l0=1), histogram())
    release.write(tmp_path / "paid.parquet", certificate=True)
    written(tmp_path / "free.csv")
    assert verify(tmp_path / "paid.parquet", ledger=ledger).dataset == "views"
    with pytest.raises(InputError, match="no release of these rows"):
        verify(tmp_path / "free.csv", ledger=ledger)
    with pytest.raises(LedgerError):
        verify(tmp_path / "paid.parquet", ledger=tmp_path / "missing")


def test_writing_rows_removes_an_earlier_certificate(tmp_path):
    path = tmp_path / "rows.csv"
    log = {"user": list(range(3000)), "item": ["home"] * 3000}
    release = discreet.count(log, user="user", item="item", rho=0.1, delta=1e-6)
    release.write(path, certificate=True)
    discreet.verify(path)
    release.write(path)
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]


def test_a_policy_is_checked_with_rounding_against_the_release(tmp_path):
    path = tmp_path / "rows.csv"
    guarantee = written(path, LaplaceThreshold.from_epsilon(epsilon=1.0, delta=1e-6, l0=1)).guarantee
    epsilon = guarantee.epsilon(1e-6)
    found = verify(path, max_epsilon=epsilon, delta=1e-6)
    assert (found.epsilon, found.policy) == (epsilon, (epsilon, 1e-6))
    assert verify(path).policy is None
    with pytest.raises(InputError, match=re.escape(f"epsilon {epsilon!r} at delta 1e-06; the policy allows")):
        verify(path, max_epsilon=math.nextafter(epsilon, 0), delta=1e-6)
    with pytest.raises(InputError, match="no epsilon at delta 1e-07"):
        verify(path, max_epsilon=9, delta=1e-7)
    for wrong in (
        {"max_epsilon": 1},
        {"delta": 1e-6},
        {"max_epsilon": "1", "delta": 1e-6},
        {"max_epsilon": 1, "delta": -1},
    ):
        with pytest.raises(ParameterError):
            verify(path, **wrong)


def test_a_policy_is_about_users_and_may_be_pure(tmp_path):
    path = tmp_path / "rows.csv"
    log = {"user": [1, 2], "page": ["home"] * 2}
    discreet.count(log, user="user", item="page", items=["home"], epsilon=1).write(path, certificate=True)
    assert 0.999 < verify(path, max_epsilon=1, delta=0).epsilon <= 1
    assert "(1, 0)-DP" in str(verify(path))
    with pytest.raises(InputError, match="the policy allows"):
        verify(path, max_epsilon=0.99, delta=0)
    stream = discreet.BinaryMechanism.from_rho(rho=0.1, delta=1e-7, l0=1, horizon=2, unit="event").start()
    stream.step([["home"]] * 900).write(path, certificate=True)
    with pytest.raises(InputError, match="is per event"):
        verify(path, max_epsilon=9, delta=1e-6)


def test_the_unit_is_a_claim_unless_a_ledger_or_a_stream_has_it(tmp_path):
    path, ledger = tmp_path / "rows.csv", tmp_path / "ledger"
    log = {"user": [*range(3000)], "page": ["home"] * 3000, "ts": ["2026-01-01"] * 3000}
    day = {"user": "user", "item": "page", "time": "ts", "unit": "user-day"}
    days = Ledger.open(ledger).dataset("days", rho=9, delta=1e-5, unit="user-day")
    release = discreet.count(log, **day, rho=0.1, delta=1e-6, l0=1, budget=days)
    release.write(path, certificate=True)
    found, read = verify(path), discreet.Release.read(path)
    assert found.guarantee == read.guarantee == release.guarantee
    assert found.guarantee.unit == "user-day"
    assert read.measure == release.measure
    assert "unit" in found.claims
    assert "per user and day in UTC" in str(found)
    assert verify(path, ledger=ledger).dataset == "days"
    assert "unit" not in verify(path, ledger=ledger).claims
    with pytest.raises(InputError, match="is per user and day in UTC, and the policy is per user"):
        verify(path, max_epsilon=9, delta=1e-5)
    content = certificate(path).read_text()
    for unit, words in (("user", "user"), ("user-week", "user and week in UTC"), ("event", "event")):
        changed = content.replace('"user-day"', f'"{unit}"')
        certificate(path).write_text(changed)
        with pytest.raises(InputError, match="not imply: guarantee, measure" if unit != "event" else "claims more"):
            verify(path)
        # Whoever changes all texts, too, makes a claim that only the ledger refutes.
        changed = changed.replace("user and day in UTC", words).replace("user-days clipped", f"{unit}s clipped")
        certificate(path).write_text(changed)
        if unit != "event":
            assert verify(path).guarantee.unit == unit
            assert "unit" in verify(path).claims
        with pytest.raises(InputError, match=f"of another unit than {unit}" if unit != "event" else "claims more"):
            verify(path, ledger=ledger)
    stream = discreet.BinaryMechanism.from_rho(rho=0.1, delta=1e-7, l0=1, horizon=2, unit="event").start()
    stream.step([["home"]] * 900).write(path, certificate=True)
    assert "unit" not in verify(path).claims
    certificate(path).write_text(certificate(path).read_text().replace('"event"', '"user-day"'))
    with pytest.raises(InputError, match="claims more"):
        verify(path)
