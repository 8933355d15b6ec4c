"""Comparisons of two releases: differences, their noise, and what is claimed about them."""

import numpy as np
import pytest
from released import counted, named, ranked

import discreet as dp
from discreet.errors import ParameterError
from discreet.testing import seeded_rng


def pair():
    before = counted(items=["gone", "same", "more", "less"], counts=np.array([900, 500, 400, 300]))
    after = counted(items=["more", "same", "new", "less"], counts=np.array([600, 512, 450, 200]))
    return before.compare(after)


def test_differences_have_the_combined_sigma():
    found = pair()
    assert found.items == ["more", "less", "same", "gone", "new"]
    assert found.before == [400, 300, 500, 900, None]
    assert found.after == [600, 200, 512, None, 450]
    assert found.differences == [200, -100, 12, None, None]
    assert found.sigmas[:3] == pytest.approx([50**0.5] * 3)
    assert found.sigmas[3:] == [None, None]
    assert (len(found), found.confidence) == (5, 0.95)


def test_only_changes_larger_than_the_noise_are_claimed():
    assert pair().changed == [True, True, False, None, None]
    sure = counted(items=["a"], counts=np.array([100])).compare(counted(items=["a"], counts=np.array([118])), 0.9999)
    assert sure.changed == [False]


def test_the_text_and_the_page_show_items_of_one_release_without_a_claim():
    for text in (repr(pair()), pair()._repr_html_()):
        assert "2 of 3 items of both releases changed by more than the noise (confidence 0.95 for each item)" in text
        assert "each item); 1 item only before; 1 item only after" in text
        assert "only before" in text
        assert "only after" in text
    lines = repr(pair()).splitlines()
    assert len({len(line) for line in lines[1:]}) == 1
    evil = counted(items=["<script>\u202e"], counts=np.array([9]))
    assert "<script>" not in evil.compare(evil)._repr_html_()
    assert "\u202e" not in repr(evil.compare(evil)) + evil.compare(evil)._repr_html_()


def test_long_comparisons_are_cut():
    many = counted(items=[f"item-{number}" for number in range(50)])
    assert repr(many.compare(many)).endswith("and 30 more")
    assert "and 30 more" in many.compare(many)._repr_html_()


def test_a_frame_has_missing_values():
    pandas = pytest.importorskip("pandas")
    frame = pair().to_pandas()
    assert frame.columns.tolist() == ["item", "before", "after", "difference", "sigma", "changed"]
    assert frame["difference"].isna().tolist() == [False] * 3 + [True] * 2
    assert frame["changed"].tolist()[:3] == [True, True, False]
    assert frame.loc[3, "changed"] is pandas.NA
    assert frame["before"].dtype == "Int64"
    empty = counted(items=[]).compare(counted(items=[])).to_pandas()
    assert empty.dtypes.tolist()[1:] == frame.dtypes.tolist()[1:]


def test_what_cannot_be_compared_is_refused():
    clipped = counted(clipped=True, l0=2, notes=("counts of users clipped to 2 items each; sigma is the noise alone",))
    events = counted(guarantee=dp.Guarantee(1, 1e-6, unit="event"))
    for other, text in (
        (ranked(), "no counts to compare"),
        (named(), "no counts to compare"),
        (counted("int64"), "items of type string and int64"),
        (events, "counts of users and of events"),
        (clipped, "has counts of users, and the other has counts of users clipped to 2 items each. These .* same l0"),
        ({"home": 3}, "other must be a Release"),
    ):
        with pytest.raises(ParameterError, match=text):
            counted().compare(other)
    assert clipped.compare(clipped).notes[0] == clipped.measure


@pytest.mark.parametrize(("l0", "least", "most"), [(5, 0.3, 1), (None, 0, 0.2)])
def test_a_comparison_of_clipped_users_warns_of_chosen_items(l0, least, most):
    draws = np.random.default_rng(1)
    counts = np.minimum(draws.geometric(0.2, 20_000), 40)
    log = {"user": np.repeat(np.arange(20_000), counts), "item": draws.integers(0, 300, counts.sum())}
    before, after = (dp.count(log, user="user", item="item", l0=l0, rho=1, delta=1e-6) for _ in range(2))
    found = before.compare(after)
    assert least <= found.changed.count(True) / 300 <= most  # over 15 logs: 0.61 to 0.68, and 0 to 0.05
    assert any("did not change" in note for note in found.notes) == (l0 is not None)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_unchanged_items_seldom_look_changed(law):
    table = dp.Histogram.from_counts([*range(2000)], [9000] * 2000, l0=1, linf=1, complete=True)
    mechanism = (
        dp.GaussianThreshold.from_rho(rho=0.005, delta=1e-6, l0=1)
        if law == "gaussian"
        else dp.LaplaceThreshold.from_epsilon(epsilon=0.1, delta=1e-6, l0=1)
    )
    before, after = (mechanism.release(table, rng=seeded_rng(seed)) for seed in (1, 2))
    found = before.compare(after, 0.95)
    assert 0.02 < np.mean(found.changed) < 0.065
    assert before.compare(after, 0.5).changed.count(True) < 1060


def test_a_comparison_of_seeded_or_claimed_rows_says_so():
    plain = counted()
    assert "seeded" in plain.compare(counted(seeded=True)).notes[-1]
    assert "file claims" in counted(claimed=True).compare(plain).notes[-1]
    assert plain.compare(plain).notes == ()


def test_releases_without_a_common_item_say_so():
    first, second = counted(items=["a", "b"]), counted(items=["c"])
    assert "no item in common" in first.compare(second).notes[-1]
    assert not any("no item in common" in note for note in first.compare(first).notes)


VISITS = {"user": [*range(5000)], "page": ["home"] * 5000, "ts": ["2026-01-26"] * 5000}


def test_counts_of_periods_of_different_lengths_cannot_be_compared(tmp_path):

    def release(every):
        return dp.count(VISITS, user="user", item="page", time="ts", every=every, rho=1, delta=1e-6)

    daily, weekly = release("1d"), release("1w")
    assert daily.items == weekly.items == [("2026-01-26", "home")]
    assert (daily.every, daily.header["every"], weekly.every) == ("1d", "1d", "1w")
    with pytest.raises(ParameterError, match="per 1d and per 1w cannot be compared"):
        daily.compare(weekly)
    assert daily.compare(release("1d")).notes == ()
    daily.write(tmp_path / "daily.csv", certificate=True)
    again = dp.Release.read(tmp_path / "daily.csv")
    assert again.every == "1d"
    assert dp.verify(tmp_path / "daily.csv").guarantee == daily.guarantee
    with pytest.raises(ParameterError, match="cannot be compared"):
        again.compare(weekly)
    mechanism = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=1)
    table = dp.Histogram.from_table(VISITS, user="user", item="page", time="ts", every="1w", l0=1)
    assert mechanism.release(table).every == "1w"
    items = dp.tables.UserItems.from_table(VISITS, user="user", item="page", time="ts", every="1w")
    assert dp.mechanisms.SetUnion.from_rho(rho=1, delta=1e-6, l0=1).release(items).every == "1w"
    unknown = dp.count(VISITS | {"ts": ["x"] * 5000}, user="user", item=["ts", "page"], rho=1, delta=1e-6)
    assert "every" not in unknown.header
    with pytest.raises(ParameterError, match="items of type"):
        daily.compare(unknown)


KINDS = {
    "threshold": (dp.count, {"l0": 1}),
    "found l0": (dp.count, {"l0": "auto"}),
    "kept share": (dp.count, {"l0": 1, "kept_share": True}),
    "public items": (dp.count, {"items": [("2026-01-26", "home")]}),
    "top k": (dp.top_k, {"k": 1}),
    "discover and peel": (dp.top_k, {"k": 1, "method": "discover+peel", "l0": 1}),
    "names": (dp.select, {"l0": 1}),
    "policy": (dp.select, {"l0": 2, "method": "policy_laplace"}),
    "dp_sips": (dp.select, {"l0": 2, "method": "dp_sips"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_keeps_the_length_of_its_periods(kind):
    release, parameters = KINDS[kind]
    found = release(VISITS, user="user", item="page", time="ts", every="1d", rho=1, delta=1e-6, **parameters)
    assert found.every == "1d"


def test_a_part_of_a_log_has_no_period():
    assert dp.count(VISITS, user="user", item="page", time="ts", since="2026-01-01", rho=1, delta=1e-6).every is None


def test_sums_with_other_bounds_are_not_compared():
    # Bounds of more than nine digits, which the steps of decimals and of floats keep.
    data, columns = (
        {"user": [1, 2], "item": ["a", "a"], "v": [5.0, 2.0]},
        {"user": "user", "item": "item", "value": "v"},
    )
    for resolution in (0.01, None):
        wide, narrow = (
            dp.sum(data, **columns, bounds=(low, high), resolution=resolution, items=["a"], rho=1)
            for low, high in ((-0.77, 123456789.12), (-0.77, 123456789.13))
        )
        assert wide.summed.bounds == (-0.77, 123456789.12)
        assert "clipped to [-0.77, 123456789.12] for" in wide.measure
        with pytest.raises(ParameterError, match="cannot be compared"):
            wide.compare(narrow)
        assert len(wide.compare(wide)) == 1
