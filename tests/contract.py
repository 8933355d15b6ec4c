"""Tests that every mechanism must pass. A test class inherits the tests and provides its mechanism."""

import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

from discreet import Guarantee, Histogram, Release, verify
from discreet.errors import InputError, ParameterError, SensitivityError
from discreet.mechanisms import Mechanism, Replacement
from discreet.privacy import Sensitivity
from discreet.release.made_by import facts_of
from discreet.release.release import changed
from discreet.tables import UserItems
from discreet.testing import seeded_rng


class Contract:
    """Tests of all mechanisms. A subclass provides `mechanism()` and `plain()`, data of which it releases something."""

    def mechanism(self):
        raise AssertionError("a test class must provide its mechanism")

    def plain(self):
        raise AssertionError("a test class must provide data")

    def first(self, released):
        """Return the first release if there are several."""
        return released[0] if isinstance(released, list) else released

    def size(self, released):
        return len(self.first(released))

    def test_a_mechanism_states_what_it_reads_and_protects(self):
        assert isinstance(self.mechanism(), Mechanism)
        assert isinstance(self.mechanism().reads, type)
        assert isinstance(self.plain(), self.mechanism().reads)
        assert isinstance(self.mechanism().protects, Sensitivity)

    def test_all_parameters_of_release_but_data_are_keyword_only(self):
        first, *others = inspect.signature(type(self.mechanism()).release).parameters.values()
        assert first.name == "self"
        assert (others[0].name, others[0].kind) == ("data", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        assert "rng" in [other.name for other in others]
        assert {other.kind for other in others[1:]} <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}

    def test_from_rho_and_from_epsilon_take_only_keywords(self):
        for maker in ("from_rho", "from_epsilon"):
            if isinstance(self.mechanism(), Replacement) or not hasattr(self.mechanism(), maker):
                continue
            for parameter in inspect.signature(getattr(type(self.mechanism()), maker)).parameters.values():
                assert parameter.kind == inspect.Parameter.KEYWORD_ONLY, (maker, parameter)

    def test_a_release_states_its_guarantee_and_mechanism(self):
        release = self.first(self.mechanism().release(self.plain()))
        assert release.guarantee == self.mechanism().guarantee
        assert type(self.mechanism()).__name__ in release.made_by
        assert not release.seeded

    def test_the_guarantee_is_known_before_any_data(self):
        assert isinstance(self.mechanism().guarantee, Guarantee)

    def test_parameters_are_frozen_and_keyword_only(self):
        mechanism = self.mechanism()
        name = dataclasses.fields(mechanism)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, name, 1)
        with pytest.raises(TypeError):
            type(mechanism)(1, 2)

    @pytest.mark.parametrize("other", ["False", 1, 0, None])
    def test_a_flag_must_be_a_bool(self, other):
        mechanism = self.mechanism()
        for field in dataclasses.fields(mechanism):
            if isinstance(getattr(mechanism, field.name), bool):
                with pytest.raises(ParameterError, match=f"^{field.name} must be True or False"):
                    dataclasses.replace(mechanism, **{field.name: other})

    @pytest.mark.parametrize("word", ["seed", "random_state"])
    def test_no_mechanism_takes_a_seed(self, word):
        with pytest.raises(TypeError):
            dataclasses.replace(self.mechanism(), **{word: 1})
        with pytest.raises(TypeError):
            self.mechanism().release(self.plain(), **{word: 1})

    def test_names_of_columns_for_data_without_columns_name_the_remedy(self):
        mechanism = self.mechanism()
        if mechanism.reads in (Histogram, UserItems):
            with pytest.raises(ParameterError, match=rf"give {mechanism.reads.__name__}\.from_table"):
                mechanism.release({"u": [1], "i": [2]}, user="u", item="i")

    def test_equal_parameters_are_equal_mechanisms(self):
        assert self.mechanism() == self.mechanism()
        assert hash(self.mechanism()) == hash(self.mechanism())

    def test_a_numpy_generator_is_refused(self):
        with pytest.raises(ParameterError, match="seeded_rng"):
            self.mechanism().release(self.plain(), rng=np.random.default_rng(1))

    def test_every_public_member_is_documented(self):
        for name, member in inspect.getmembers(type(self.mechanism())):
            if name.startswith("_") or inspect.isclass(member):
                continue
            if callable(member) or isinstance(member, property):
                assert inspect.getdoc(member), name

    def test_a_certificate_states_what_the_mechanism_implies(self, tmp_path):
        mechanism = self.mechanism()
        release = self.first(mechanism.release(self.plain()))
        if not isinstance(release, Release):
            return
        release.write(tmp_path / "rows.csv", certificate=True)
        assert verify(tmp_path / "rows.csv").made_by == release.made_by
        read = Release.read(tmp_path / "rows.csv")
        found = facts_of(release.made_by, release.l0, release.summed)
        assert found is not None
        assert (found.kind, found.listed) == (mechanism.releases, mechanism.lists_items)
        assert found.law == release.noise
        assert (read.kind, read.most, read.listed) == (release.kind, release.most, release.listed)
        if release.counts is None:
            return
        # A file cannot show that no user had more items.
        assert read.clipped == (release.clipped or found.bounds_items)
        if "all sigmas" in found.claims:
            return
        changed(release, sigmas=1.01 * release.sigmas).write(tmp_path / "wrong.csv", certificate=True)
        with pytest.raises(InputError, match="sigma"):
            verify(tmp_path / "wrong.csv")

    def test_a_used_mechanism_can_be_copied_and_pickled(self):
        used = self.mechanism()
        used.release(self.plain())
        for copied in (copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
            assert copied == used
            assert copied.guarantee == used.guarantee
            assert self.size(copied.release(self.plain())) > 0


class MechanismContract(Contract):
    """Tests of histogram mechanisms. A subclass provides `mechanism()`, which must release an item of `plain()`."""

    counted = True
    """Whether the mechanism publishes counts."""

    def plain(self):
        items = [f"item-{n:02d}" for n in range(12)]
        counts = [40_000 - 3_000 * n for n in range(12)]
        return self.histogram(items, counts)

    def histogram(self, items, counts, **changes):
        protected = self.mechanism().protects
        given = {"l0": protected.l0, "linf": protected.linf, "complete": True, **changes}
        return Histogram.from_counts(items, counts, **given)

    def published(self, release):
        return (release.items, None if release.counts is None else release.counts.tolist())

    def test_released_items_are_items_of_the_histogram(self):
        release = self.mechanism().release(self.plain())
        assert isinstance(release, Release)
        assert set(release.items) <= {f"item-{n:02d}" for n in range(12)}
        assert len(set(release.items)) == len(release.items) > 0

    def test_the_order_of_rows_follows_published_values(self):
        # The items are in increasing order of exact counts. Five counts are far above the others.
        items = [f"item-{n:02d}" for n in range(12)]
        close = self.histogram(items, [3_000 + n if n < 7 else 40_000 + n for n in range(12)])
        release = self.mechanism().release(close)
        assert len(release) > 0
        assert (release.counts is None) is (not self.counted)
        if self.counted:
            rows = list(zip((-release.counts).tolist(), release.items, strict=True))
            assert rows == sorted(rows)
        elif not release.ranked:
            assert release.items == sorted(release.items)

    def test_the_order_of_the_input_does_not_change_a_release(self):
        items = [f"item-{n:02d}" for n in range(12)]
        counts = np.array([900] * 6 + [5] * 6)
        results = []
        for order in (np.arange(12), np.arange(12)[::-1], np.random.default_rng(1).permutation(12)):
            histogram = self.histogram([items[i] for i in order], counts[order])
            results.append(self.published(self.mechanism().release(histogram, rng=seeded_rng(8))))
        assert results[0] == results[1] == results[2]

    def test_only_a_seeded_release_repeats_and_says_no_privacy(self):
        if self.counted:
            # Five counts with noise of about 4 are equal with a chance of 2e-6, so those of three releases: 1e-17.
            mechanism, data = self.mechanism(), self.plain()
            first, second = ([self.published(mechanism.release(data)) for _ in range(3)] for _ in range(2))
            assert first != second
        seeded = [self.mechanism().release(self.plain(), rng=seeded_rng(3)) for _ in range(2)]
        assert self.published(seeded[0]) == self.published(seeded[1])
        assert seeded[0].seeded
        assert "no privacy" in repr(seeded[0])
        assert "no privacy" in seeded[0].promise

    def test_an_empty_release_has_the_same_columns(self):
        empty = self.histogram([], [])
        release = self.mechanism().release(empty)
        full = self.mechanism().release(self.plain())
        assert len(release) == 0
        assert [(name, kind) for name, _, kind in release.columns] == [(n, k) for n, _, k in full.columns]
        assert release.guarantee == full.guarantee

    def test_counts_of_zero_are_never_released(self):
        zeros = self.histogram(["a", "b"], [0, 0])
        for _ in range(5):
            assert len(self.mechanism().release(zeros)) == 0

    def test_a_larger_sensitivity_is_refused_with_a_remedy(self):
        protected = self.mechanism().protects
        larger = self.histogram(["a"], [9], linf=protected.linf + 1)
        with pytest.raises(SensitivityError, match="linf"):
            self.mechanism().release(larger)
        if protected.l0 is not None:
            for l0 in (None, protected.l0 + 1):
                with pytest.raises(SensitivityError, match="l0"):
                    self.mechanism().release(self.histogram(["a"], [9], l0=l0))

    @pytest.mark.parametrize("other", [None, {"a": 1}, [("a", 1)], "a.parquet"])
    def test_other_data_than_a_histogram_is_refused(self, other):
        with pytest.raises(ParameterError, match="Histogram"):
            self.mechanism().release(other)
