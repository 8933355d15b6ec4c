"""Odd parameters and odd rows through every public door: a clear error at once, or finite numbers."""

import inspect
import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

import discreet as dp
from discreet import mechanisms, privacy, queries, streams, tables, testing
from discreet.engines.checking import check
from discreet.engines.projection import period_of
from discreet.errors import DiscreetError, InputError, LedgerError, ParameterError, SchemaError, StateError
from discreet.privacy.conversion import cdp_rho

NUMBERS = [0, -1, 5e-324, 1e-320, 1e-300, 1e308, -0.0, 2**64, 10**400, 10**5000, math.nan, math.inf, -math.inf, 1.5]
NUMBERS += [Fraction(1, 3), Fraction(1, 10**400), Fraction(10**5000), Decimal("0.5"), Decimal("sNaN"), 1j]
NUMPY = [np.float16(0.1), np.float32(0.5), np.float64(math.nan), np.longdouble("1e4000"), np.int8(1), np.bool_(True)]
NUMPY += [np.array(1), np.array([1.0]), np.array([1, 2]), np.timedelta64(1, "s"), np.datetime64("2020-01-01")]
OTHERS = [None, True, "1", "", "auto", "\ud800", b"1", [], [1], ("a", 1), {"a": 1}, [["x", 1]], object(), int, ...]
ODD = [*NUMBERS, *NUMPY, *OTHERS]
GIVEN = {
    "rho": 1.0,
    "epsilon": 1.0,
    "delta": 1e-6,
    "l0": 3,
    "k": 3,
    "sigma": 50.0,
    "scale": 50.0,
    "horizon": 16,
    "m": 3,
    "m_prime": 3,
    "threshold": 100,
    "reach": 200,
    "power": 4,
    "gamma": 0.1,
    "again": 5.0,
    "runs": 2,
    "linf": 1,
    "items": ("a", "b"),
    "method": "policy_gaussian",
    "low": 0,
    "high": 5,
    "most": 3,
    "users": 1000,
    "exponent": 1.0,
    "items_per_user": 1.5,
    "kind": mechanisms.GaussianThreshold,
    "unit": "user",
    "seed": 1,
    "stages": (queries.Stage(runs=2, epsilon=0.1, threshold=10),),
    "correction": None,
    "mechanism": mechanisms.GaussianThreshold(sigma=5, delta=1e-6, l0=1),
}
CLASSES = [
    *(getattr(module, name) for module in (mechanisms, queries, streams, privacy) for name in module.__all__),
    dp.Budget,
]
WAYS = ("", "from_rho", "from_epsilon", "from_dp", "from_bounded_range", "recommended")
TABLE = {"u": [*range(40)] * 2, "i": ["a"] * 40 + ["b"] * 40, "v": [1] * 80}
COLUMNS = {"user": "u", "item": "i"}
RELEASE = dp.count(TABLE, **COLUMNS, rho=1, delta=1e-6)


STREAM = dp.BinaryMechanism(sigma=5, delta=1e-6, l0=1, horizon=4)
AUDITED, CALIBRATED = dp.TruncatedGeometric(epsilon=1, delta=1e-2), dp.CalibratedCounts(rho=1, delta=1e-6)
LISTS = {"outcomes": 3, "queries": 2, "epsilon": 0.1, "delta": 1e-8}


def makers():
    """Yield the constructors of all public classes, with parameters that suffice."""
    for kind in CLASSES:
        for way in WAYS if isinstance(kind, type) and not inspect.isabstract(kind) else ():
            make = getattr(kind, way, None) if way else kind
            if make is None:
                continue
            parameters = inspect.signature(make).parameters
            needed = [name for name, known in parameters.items() if known.default is known.empty and known.kind != 4]
            if set(needed) <= GIVEN.keys():
                more = {"l0": 1} if kind is mechanisms.Replacement and way else {}
                names = [name for name, known in parameters.items() if known.kind != 4]
                yield pytest.param(make, {name: GIVEN[name] for name in needed} | more, names, id=make.__qualname__)


def finite(made):
    repr(made)
    guarantee = getattr(made, "guarantee", None)
    if isinstance(guarantee, dp.Guarantee):
        assert math.isfinite(guarantee.rho)
        assert 0 <= guarantee.delta <= 1
        assert guarantee.promise


def tried(call, **parameters):
    """Return what a call returns, or the error that it raises, which must be one of the library."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return call(**parameters)
        except DiscreetError as error:
            return error


# The searches for bounded and corrected answers are slow: `answer_queries` tries their guarantees below.
SLOW = ("BoundedAnswers", "CorrectedAnswers.")


@pytest.mark.parametrize(("make", "given", "names"), [made for made in makers() if not made.id.startswith(SLOW)])
def test_every_constructor_takes_or_refuses_odd_values(make, given, names):
    for name in names:
        for odd in ODD:
            found = tried(make, **{**given, name: odd})
            if isinstance(found, DiscreetError):
                assert len(str(found)) < 600
            else:
                tried(finite, made=found)


VERBS = {
    "count": lambda **more: dp.count(TABLE, **COLUMNS, **{"delta": 1e-6, **more}),
    "count_l0": lambda **more: dp.count(TABLE, **COLUMNS, **{"delta": 1e-6, "l0": 2, **more}),
    "count_auto": lambda **more: dp.count(TABLE, **COLUMNS, **{"delta": 1e-6, "l0": "auto", **more}),
    "count_items": lambda **more: dp.count(TABLE, **COLUMNS, **{"items": ["a"], "l0": 1, "delta": 1e-6, **more}),
    "top_k": lambda **more: dp.top_k(TABLE, **COLUMNS, **{"delta": 1e-6, "k": 2, **more}),
    "select": lambda **more: dp.select(TABLE, **COLUMNS, **{"delta": 1e-6, "l0": 2, **more}),
    "sum": lambda **more: dp.sum(TABLE, **COLUMNS, value="v", **{"bounds": (0, 5), "l0": 1, "delta": 1e-6, **more}),
    "sum_items": lambda **more: dp.sum(TABLE, **COLUMNS, value="v", **{"bounds": (0, 5), "items": ["a"], **more}),
    "answer_queries": lambda **more: dp.answer_queries([1, 2], **{"delta": 1e-6, "method": "gaussian", **more}),
    "stream": lambda **more: dp.Stream.recommended(**{"delta": 1e-6, "l0": 1, "horizon": 4, **more}),
    "budget": lambda **more: dp.Budget(**{"delta": 1e-6, **more}),
}
EXACT = [Decimal, Fraction, np.float64, np.longdouble]
"""Types of numbers, each made of the text of a float."""


@pytest.mark.parametrize("exact", EXACT)
@pytest.mark.parametrize(("make", "given", "names"), [made for made in makers() if not made.id.startswith(SLOW)])
def test_every_constructor_reads_a_number_of_any_type(make, given, names, exact):
    numbers = {name: exact(str(value)) for name, value in given.items() if isinstance(value, float)}
    found, expected = tried(make, **{**given, **numbers}), tried(make, **given)
    if make is dp.Guarantee:  # a claim between two floats is rounded up
        found, expected = found.rho, expected.rho
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("exact", EXACT)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_reads_a_number_of_any_type(verb, exact):
    for name in ("rho", "epsilon"):
        found, expected = (VERBS[verb](**{name: one("0.7"), "delta": one("1e-6")}) for one in (exact, float))
        assert found.guarantee == expected.guarantee
        if verb.startswith(("count", "top_k", "select", "sum")):
            for total in (exact, float):
                budget = dp.Budget(**{name: total("0.7"), "delta": total("1e-6")})
                VERBS[verb](**{name: exact("0.7"), "delta": exact("1e-6"), "budget": budget})
        for bad in ("nan", "inf", "-1"):
            with pytest.raises(ParameterError):
                VERBS[verb](**{name: exact(bad) if exact is not Fraction else Fraction(-1)})


@pytest.mark.parametrize("exact", EXACT)
def test_every_other_door_reads_a_number_of_any_type(exact, tmp_path):
    numbers = {"rho": exact("0.7"), "delta": exact("1e-6")}
    assert dp.plan("count", **numbers).guarantee == dp.plan("count", rho=0.7, delta=1e-6).guarantee
    ledger = dp.Ledger.open(tmp_path / "ledger")
    assert ledger.dataset("a", **numbers).total == dp.Budget(rho=0.7, delta=1e-6).total
    assert dp.Guarantee(**numbers).epsilon(exact("1e-5")) == dp.Guarantee(0.7, 1e-6).epsilon(1e-5)
    counted = [VERBS["count"](rho=1, relative_error=one("0.2")).made_by for one in (exact, float)]
    assert counted[0] == counted[1]


REFUSED = [0, -1, math.nan, math.inf, 1e308, True, "1", 10**400, 10**5000, np.array([1.0]), np.array([1, 2]), 1j, [1]]


@pytest.mark.parametrize("verb", VERBS)
class TestGuarantees:
    @pytest.mark.parametrize("name", ["rho", "epsilon"])
    def test_every_verb_refuses_a_bad_cost(self, verb, name):
        for bad in REFUSED:
            with pytest.raises(ParameterError):
                VERBS[verb](**{name: bad})

    def test_every_verb_needs_exactly_one_cost(self, verb):
        for both in ({}, {"rho": 1, "epsilon": 1}):
            with pytest.raises(ParameterError, match="exactly one"):
                VERBS[verb](**both)

    def test_every_verb_takes_or_refuses_a_tiny_cost(self, verb):
        for tiny in (
            {"rho": 5e-324},
            {"epsilon": 5e-324},
            {"rho": 1, "delta": 1e-320},
            {"epsilon": 1, "delta": 1e-320},
        ):
            tried(finite, made=tried(VERBS[verb], **tiny))

    def test_every_verb_refuses_a_bad_delta(self, verb):
        for bad in (1, -1, math.nan, "1", True, np.array([1.0])):
            with pytest.raises(ParameterError):
                VERBS[verb](epsilon=1, delta=bad)


@pytest.mark.parametrize(
    ("verbs", "names", "values"),
    [
        ("top_k", "k k_bar", [0, -1, 1.5, None, True, 10**400]),
        ("top_k", "k", [1001]),  # above k_bar
        ("count_l0 select sum stream", "l0", [0, -1, 1.5, True, 10**400]),
        ("stream", "l0", [None]),
        ("stream", "horizon", [0, -1, 1.5]),
        ("count_items", "items", ["a", b"a", 5, [], {"a": 1}, [["x", 1]], [1.5], ["a", "a"], np.array(1)]),
        ("count_items sum_items", "items", [["a" * 8193], ["b", "\u00e9" * 4097], [b"a" * 8193], [("a" * 8190, "b")]]),
        ("top_k select answer_queries", "method", [np.array([1, 2]), 10**5000, []]),
        ("count", "charge", [np.array([1, 2]), [], "all"]),
        ("count", "relative_error every since until", [np.array([1, 2])]),
        ("answer_queries", "rng", [object]),
    ],
)
def test_every_verb_refuses_a_bad_number_or_choice(verbs, names, values):
    for verb in verbs.split():
        for name in names.split():
            for bad in values:
                with pytest.raises((ParameterError, SchemaError)):
                    VERBS[verb](rho=1, **{name: bad})


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: VERBS["top_k"](rho=1, method="gumble"), "gumbel"),
        (lambda: VERBS["select"](rho=1, method="dp_sip"), "dp_sips"),
        (lambda: VERBS["answer_queries"](rho=1, method="gausian"), "gaussian"),
        (lambda: dp.plan("cuont", rho=1, delta=1e-6), "count"),
        (lambda: dp.plan("count", roh=1, delta=1e-6), "rho"),
        (lambda: dp.plan("answer_queries", rho=1, delta=1e-6, k=3, metod="auto"), "method"),
        (lambda: dp.mechanisms.SetUnion(method="policy_laplas", scale=1, delta=1e-6, l0=1), "policy_laplace"),
        (lambda: dp.Guarantee(1, 0, "evnt"), "event"),
    ],
)
def test_a_misspelt_choice_names_the_nearest(call, near):
    with pytest.raises(ParameterError, match=f"did you mean '{near}'"):
        call()


LONE = "\ud800"


@pytest.mark.parametrize("place", ["user", "item", "second item", "value", "time"])
def test_half_a_surrogate_in_the_name_of_a_column_is_refused_as_a_name(place):
    names = {"user": "u", "item": ["i", LONE] if place == "second item" else "i", "value": "v", "time": "t"}
    names |= {} if place == "second item" else {place: LONE}
    table = {"u": [1], "i": ["a"], "v": [1], "t": ["2026-01-31"], LONE: [1]}
    pair, given = {name: names[name] for name in ("user", "item")}, {"rho": 1, "delta": 1e-6}
    timed = {**pair, "time": names["time"], "every": "1d"}
    sums = [lambda data: dp.sum(data, **pair, value=names["value"], bounds=(0, 1), l0=1, **given)]
    times = [
        lambda data: dp.count(data, **timed, **given),
        lambda data: dp.top_k(data, **timed, k=1, **given),
        lambda data: dp.select(data, **timed, l0=1, **given),
        lambda data: dp.Histogram.from_table(data, **timed),
        lambda data: check(data, **pair, period=period_of(names["time"], "1d", None, None)),
    ]
    bounds = [lambda data: mechanisms.ContributionBound(epsilon=1, only=("a",)).release(data, **pair)]
    for data in (table, "no such file.csv"):
        for call in {"value": sums, "time": times}.get(place, [*sums, *times, *bounds]):
            with pytest.raises(ParameterError, match="UTF-8"):
                call(data)


@pytest.mark.parametrize("name", ["seed", "random_state"])
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_takes_a_seed(verb, name):
    with pytest.raises(TypeError):
        VERBS[verb](rho=1, **{name: 1})


@pytest.mark.parametrize(
    "call",
    [
        lambda odd: dp.Guarantee(0.5, 1e-6).epsilon(odd),
        lambda odd: dp.Guarantee(0.5, 1e-6).implies(odd, 1e-5),
        lambda odd: dp.Guarantee(0.5, 1e-6).implies(1, odd),
        lambda odd: dp.Guarantee(0.5, 1e-6).stating(odd, 1e-5),
        lambda odd: dp.Guarantee.from_dp(1.0, 1e-7).stating(odd, 1e-7),
        lambda odd: dp.Guarantee(1, 0, unit=odd),
        lambda odd: dp.Guarantee(1, 0, neighbours=odd),
        lambda odd: dp.Budget(rho=1, delta=1e-6).odometer(odd),
        lambda odd: dp.Budget(rho=1, delta=1e-6).split(odd),
        lambda odd: dp.Budget(rho=1, delta=1e-6).charge(odd),
        lambda odd: dp.Histogram.from_counts(odd, [5], l0=1, linf=1, complete=True),
        lambda odd: dp.Histogram.from_counts(["a"], odd, l0=1, linf=1, complete=True),
        lambda odd: dp.Histogram.from_counts(["a"], [5], l0=odd, linf=1, complete=True),
        lambda odd: dp.Histogram.from_table(TABLE, **COLUMNS, time=odd, every="1d"),
        lambda odd: dp.Histogram.from_table(TABLE, **COLUMNS, only=odd),
        lambda odd: tables.UserItems.from_table(TABLE, **COLUMNS, l0=odd),
        lambda odd: dp.Shape(odd, 50, 1.0, 3.0),
        lambda odd: dp.Shape.of_counts(odd, users=6),
        lambda odd: tables.Table(TABLE, **COLUMNS, time="t", every=odd),
        lambda odd: tables.CsvFiles(path="x.csv", encoding=odd),
        lambda odd: testing.seeded_rng(odd),
        lambda odd: dp.Stream(dp.BinaryMechanism(sigma=5, delta=1e-6, l0=1, horizon=4), items=odd),
        lambda odd: dp.plan(odd),
        lambda odd: dp.Budget(rho=1, delta=1e-6).pay_what_you_get(**LISTS).epsilon(odd),
        lambda odd: STREAM.release(odd),
        lambda odd: STREAM.start().step(odd),
        lambda odd: dp.audit.audit(odd),
        lambda odd: dp.audit.audit(AUDITED, pairs=odd, runs=0),
        lambda odd: dp.audit.audit(AUDITED, pairs=1, runs=odd),
        lambda odd: dp.audit.audit(AUDITED, pairs=1, runs=100, rng=odd),
        lambda odd: [dp.audit.audit(kind, pairs=1, runs=0, seed=odd) for kind in (AUDITED, CALIBRATED)],
        lambda odd: [dp.audit.audit(kind, pairs=1, runs=0, dp=odd) for kind in (AUDITED, CALIBRATED)],
        lambda odd: [dp.audit.audit(kind, pairs=1, runs=0, dp=(1, odd)) for kind in (AUDITED, CALIBRATED)],
        lambda odd: dp.audit.trial(odd, {}, {"a": 1}, runs=100),
        lambda odd: dp.audit.trial(AUDITED, odd, {"a": 1}, runs=100),
        lambda odd: dp.audit.trial(AUDITED, {"a": odd}, {"a": 1}, runs=100),
        lambda odd: dp.audit.trial(AUDITED, {}, {"a": 1}, runs=odd),
        lambda odd: dp.audit.trial(AUDITED, {}, {"a": 1}, runs=100, confidence=odd),
    ],
)  # fmt: skip
def test_every_value_and_handle_takes_or_refuses_odd_values(call):
    for odd in ODD:
        tried(call, odd=odd)


def test_a_number_under_a_mask_is_never_used():
    hidden, items = np.ma.array(5, mask=True), np.ma.array([1, 2], mask=[0, 1])
    for call in (
        lambda: dp.count(TABLE, **COLUMNS, rho=1, delta=1e-6, l0=hidden),
        lambda: dp.Histogram.from_counts(["a"], [5], l0=1, linf=1, complete=True, users=hidden),
        lambda: dp.Histogram.from_table({"u": [1, 2], "i": [1, 2]}, **COLUMNS, only=items),
        lambda: dp.Histogram.from_counts(items, [1, 2], l0=1, linf=1, complete=True),
        lambda: dp.count({"u": [1, 2], "i": [1, 2]}, **COLUMNS, rho=1, delta=1e-6, items=items),
    ):
        with pytest.raises(ParameterError):
            call()


class BadPath:
    """A path that fails when it is asked for its text."""

    def __fspath__(self):
        raise RuntimeError("secret")


NO_PATHS = [None, 5, True, math.nan, object(), b"x.csv", [], [(1, "a")], {}, BadPath, BadPath(), "\0.csv", "\ud800.csv"]
PATH_DOORS = {
    "open_database": lambda path: tables.open_database(path, "t"),
    "CsvFiles": lambda path: tables.CsvFiles(path=path),
    "read": dp.Release.read,
    "write": RELEASE.write,
    "verify": dp.verify,
    "ledger": dp.Ledger.open,
    "stream": lambda path: dp.Stream.open(path, STREAM),
}


@pytest.mark.parametrize("door", PATH_DOORS)
def test_what_is_no_path_is_refused_and_leaves_no_file(door, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for odd in NO_PATHS:
        with pytest.raises(ParameterError, match="a path must be text without NUL"):
            PATH_DOORS[door](odd)
    for long in ("x" * 300 + ".csv", "x" * 5000 + "/y.csv"):
        if door != "CsvFiles":  # it reads nothing
            with pytest.raises((InputError, LedgerError, StateError)):
                PATH_DOORS[door](long)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("verb", ["count", "top_k", "select", "sum"])
def test_data_that_is_no_path_is_refused_uncharged(verb):
    budget = dp.Budget(rho=9, delta=1e-4)
    more = {"count": {}, "top_k": {"k": 2}, "select": {"l0": 2}, "sum": {"value": "v", "bounds": (0, 5), "l0": 1}}
    for odd in [odd for odd in NO_PATHS if odd != {}]:
        with pytest.raises(ParameterError):
            getattr(dp, verb)(odd, **COLUMNS, **more[verb], rho=1, delta=1e-6, budget=budget)
    assert budget.spent.rho == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda memory: dp.count(TABLE, **COLUMNS, rho=1, delta=1e-6, memory=memory),
        lambda memory: dp.top_k(TABLE, **COLUMNS, k=2, rho=1, delta=1e-6, memory=memory),
        lambda memory: dp.select(TABLE, **COLUMNS, l0=2, rho=1, delta=1e-6, memory=memory),
        lambda memory: tables.Table(TABLE, **COLUMNS, memory=memory),
        lambda memory: dp.Histogram.from_table(TABLE, **COLUMNS, memory=memory),
        lambda memory: dp.Histogram.from_pairs([1], ["a"], memory=memory),
        lambda memory: tables.UserItems.from_table(TABLE, **COLUMNS, memory=memory),
        lambda memory: tables.UserItems.from_pairs([1], ["a"], memory=memory),
        lambda memory: tables.open_database("missing.db", "t", memory=memory),
        lambda memory: dp.Budget(rho=1, delta=1e-6).release(GIVEN["mechanism"], None, memory=memory),
        lambda memory: dp.Budget(rho=1, delta=1e-6).afford(dp.GumbelTopK, k=2, rho=memory),
        lambda memory: dp.Budget(rho=1, delta=1e-6).afford(dp.GumbelTopK, k=2, epsilon=memory),
    ],
)  # fmt: skip
def test_a_bad_memory_and_a_parameter_of_others_are_refused(call):
    for bad in (0, -1, 1.5, math.nan, math.inf, True, "x", "1e400GB", "-1GB", b"1GB", [], object(), np.array([1])):
        with pytest.raises(ParameterError):
            call(bad)


@pytest.mark.parametrize("small", [np.float16(0.3), np.float32(0.3)])
def test_small_floats_are_computed_with_in_full(small):
    plain = float(small)
    for entries, make in (
        (1, lambda epsilon: mechanisms.LaplaceThreshold.from_epsilon(epsilon=epsilon, delta=1e-6, l0=3)),
        (0, lambda epsilon: mechanisms.GumbelTopK.from_epsilon(epsilon=epsilon, delta=1e-6, k=3)),
        (1, lambda epsilon: mechanisms.GaussianCounts.from_epsilon(items=("a",), epsilon=epsilon, delta=1e-6)),
        (0, lambda epsilon: queries.LaplaceAnswers.from_epsilon(k=3, epsilon=epsilon, delta=0)),
    ):
        cdp_rho.cache_clear()
        odd = make(small)
        assert odd == make(plain)
        assert repr(odd) == repr(make(plain))
        assert cdp_rho.cache_info().currsize == entries  # at most one for both


def test_tiny_deltas_and_costs_have_an_epsilon():
    for rho in (5e-324, 1e-300, 1.0, 10_000.0):
        for delta in (5e-324, 1e-320, 1e-300):
            epsilon = dp.Guarantee(rho, 0).epsilon(delta)
            assert 0 <= epsilon < math.inf
            assert dp.Guarantee(rho, 0).implies(epsilon, delta)


@pytest.mark.parametrize("epsilon", [1000, 1e-200])
@pytest.mark.parametrize("verb", [dp.count, partial(dp.count, l0=1), partial(dp.top_k, k=1)])
def test_an_epsilon_that_no_noise_has_is_named(verb, epsilon):
    with pytest.raises(ParameterError, match="no noise has an epsilon of") as refused:
        verb(TABLE, **COLUMNS, items=["a"], epsilon=epsilon)
    assert refused.value.names == ("epsilon",)


def test_an_error_shows_numbers_that_differ():
    with pytest.raises(ParameterError, match="at most 1234567, not 1234568"):
        dp.Shape(2_000_000, 1_234_567, 1.0, 1_234_568)
    with pytest.raises(ParameterError, match=r"\(1.00000001, 1e-06\)"):
        dp.Guarantee(1, 0).stating(1.00000001, 1e-6)


MADE = {
    "count": partial(dp.count),
    **{f"count {l0}": partial(dp.count, l0=l0) for l0 in (3, "auto")},
    "count with a share": partial(dp.count, l0=3, kept_share=True),
    "count of listed": partial(dp.count, items=["a"]),
    "top_k": partial(dp.top_k, k=3),
    "top_k peel": partial(dp.top_k, k=3, l0=2, method="discover+peel"),
    "top_k of listed": partial(dp.top_k, k=1, items=["a"]),
    **{
        f"select {name}": partial(dp.select, l0=3, method=name)
        for name in ("threshold", "dp_sips", "weighted_gaussian")
    },
    "select": partial(dp.select),
    "sum": partial(dp.sum, value="v"),
    **{f"sum {bounds}": partial(dp.sum, value="v", bounds=bounds, l0=2) for bounds in ((0, 2), "auto")},
    "sum of listed": partial(dp.sum, value="v", bounds=(0, 2), l0=2, items=["a"]),
    "aggregate": partial(dp.aggregate, rows=True),
    "aggregate l0": partial(dp.aggregate, sums={"v": (0, 2)}, l0=2),
}
AMOUNTS = [("rho", x) for x in (5e-324, 1e-300, 1e-20, 1e-10, 1e4)]
AMOUNTS += [("epsilon", x) for x in (5e-324, 1e-20, 1e-5, 1e3)]


@pytest.mark.parametrize("verb", MADE.values(), ids=MADE)
def test_an_error_names_the_privacy_parameters_that_were_given(verb):
    log = {"user": [1, 2, 3] * 3, "item": ["a", "b", "c"] * 3, "v": [1, 1, 1] * 3}
    raised = []
    for (name, amount), delta in product(AMOUNTS, (1e-300, 1e-40, 1e-6, 0.999999)):
        given = {name: amount, "delta": delta}
        try:
            verb(log, user="user", item="item", **given)
        except ParameterError as error:
            raised.append((error, given))
    assert raised
    for error, given in raised:
        assert {*error.names} <= {*given, "l0"}, error
        assert not re.search("(scale|sigma)[^;:]* must", str(error)), error
        assert not error.beyond or error.refused in given.values(), error
