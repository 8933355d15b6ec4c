"""Labels of charges, releases that are charged once, and charges that replace others."""

import dataclasses
import hashlib
import inspect
import os
import random
import signal

import numpy as np
import pytest
from children import ended, forks, in_child, lines, start

import discreet as dp
from discreet import Budget, Ledger, releasing
from discreet.budgets import charge, ledger_format, record
from discreet.budgets.ledger_file import LedgerFile
from discreet.errors import AlreadyCharged, LedgerError, ParameterError
from discreet.release.provenance import Provenance
from discreet.releasing import Call, Options

LOG = {"user": [*range(3000)] * 2, "page": ["home"] * 3000 + ["help"] * 3000, "ts": ["2026-02-01T10:00"] * 6000}
COUNT = {"user": "user", "item": "page", "rho": 0.01, "delta": 1e-9}
VERBS = {
    "count": lambda **more: dp.count(LOG, **COUNT, **more),
    "count with l0": lambda **more: dp.count(LOG, **COUNT, l0=2, kept_share=True, **more),
    "count of items": lambda **more: dp.count(LOG, **COUNT, items=["home"], **more),
    "top_k": lambda **more: dp.top_k(LOG, **COUNT, k=1, **more),
    "top_k by discovery": lambda **more: dp.top_k(LOG, **COUNT, k=1, method="discover+peel", l0=2, **more),
    "select": lambda **more: dp.select(LOG, **COUNT, l0=3, **more),
    "sum": lambda **more: dp.sum(LOG | {"v": [1] * 6000}, **COUNT, value="v", bounds=(0, 9), l0=2, **more),
    "aggregate": lambda **more: dp.aggregate(
        LOG | {"v": [1] * 6000}, **COUNT, rows=2, sums={"v": [0, 9]}, means={"v": (0, 5, 0.1)}, l0=2, **more
    ),
}


@pytest.fixture
def views(tmp_path):
    return Ledger.open(tmp_path / "ledger").dataset("views", rho=1, delta=1e-6)


@pytest.mark.parametrize("verb", VERBS)
def test_a_key_is_charged_once(views, verb):
    release = VERBS[verb](budget=views, once="night 1", label="the first night")
    spent = views.spent
    with pytest.raises(AlreadyCharged) as refused:
        VERBS[verb](budget=views, once="night 1")
    error = refused.value
    assert (error.once, error.dataset, error.digest) == ("night 1", "views", release.digest)
    assert error.charged is None
    assert views.spent == spent
    (row,) = views.history
    assert (row.label, row.once, row.verb, row.time) == (
        "the first night",
        "night 1",
        verb.partition(" ")[0],
        error.time,
    )
    assert (release.provenance.label, release.provenance.once) == ("the first night", "night 1")
    # The key belongs to its dataset.
    other = Ledger.open(views._chain.path).dataset("other", rho=1, delta=1e-6)
    VERBS[verb](budget=other, once="night 1")


@pytest.mark.parametrize(
    "other",
    [
        {"rho": 0.02},
        {"delta": 1e-8},
        {"item": "ts"},
        {"user": ["user", "ts"]},
        {"l0": 3},
        {"items": ["home"]},
        {"charge": "spent"},
        {"relative_error": 0.2},
        {"time": "ts", "since": "2026-02-01"},
    ],
)
def test_another_promise_under_a_key_is_refused(views, other):
    dp.count(LOG, **COUNT, budget=views, once="night")
    with pytest.raises(ParameterError, match="other parameters or columns") as refused:
        dp.count(LOG, **(COUNT | other), budget=views, once="night")
    assert refused.value.names == ("once",)
    assert len(views.history) == 1
    with pytest.raises(AlreadyCharged):
        dp.count(LOG, **COUNT, budget=views, once="night", memory="1GB", progress=False, label="another label")


STATED = {
    "count": "count(delta=1/1000000000, item='page', rho=1/100, user='user')",
    "count with l0": "count(delta=1/1000000000, item='page', kept_share=True, l0=2, rho=1/100, user='user')",
    "count of items": "count(delta=1/1000000000, item='page', items=('home'), rho=1/100, user='user')",
    "top_k": "top_k(delta=1/1000000000, item='page', k=1, rho=1/100, user='user')",
    "top_k by discovery": (
        "top_k(delta=1/1000000000, item='page', k=1, l0=2, method='discover+peel', rho=1/100, user='user')"
    ),
    "select": "select(delta=1/1000000000, item='page', l0=3, rho=1/100, user='user')",
    "aggregate": (
        "aggregate(delta=1/1000000000, item='page', l0=2, means={'v': (0, 5, 1/10)}, rho=1/100, rows=2, "
        "sums={'v': (0, 9)}, user='user')"
    ),
    "sum": "sum(bounds=(0, 9), delta=1/1000000000, item='page', l0=2, rho=1/100, user='user', value='v')",
}


def test_items_of_any_library_are_the_same_promise_and_others_are_not(views):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    items = [f"s{number}" for number in range(60)]
    others = [*items[:20], "other", *items[21:]]
    dp.count(LOG, **COUNT, items=polars.Series(items), budget=views, once="key")
    for same in (items, tuple(items), np.array(items), pyarrow.array(items), polars.Series(items)):
        with pytest.raises(AlreadyCharged):
            dp.count(LOG, **COUNT, items=same, budget=views, once="key")
    for different in (others, np.array(others), pyarrow.array(others), polars.Series(others)):
        with pytest.raises(ParameterError, match="other parameters"):
            dp.count(LOG, **COUNT, items=different, budget=views, once="key")


@pytest.mark.parametrize("verb", VERBS)
def test_a_promise_has_what_the_caller_stated(views, verb, monkeypatch):
    """Defaults and chosen mechanisms, which may change, are not in it: these texts hold for all versions."""
    calls, stated = [], Call._stated
    monkeypatch.setattr(Call, "_stated", lambda call: calls.append(call) or stated(call))
    VERBS[verb](budget=views, once="night")
    (call,) = calls
    known = inspect.signature(call.verb).parameters.keys() - {"data", "value", "budget", "charge"}
    assert call.parameters.keys() == known - Options.__annotations__.keys()
    assert stated(call) == STATED[verb]
    promise = views._chain.read().keys["views", "night"][1]
    assert promise == hashlib.sha256(STATED[verb].encode()).hexdigest()


def test_a_stated_default_and_other_types_are_the_same_promise(views):
    numbers = LOG | {"page": [7] * 6000}
    dp.count(numbers, **COUNT, items=[7, 8], budget=views, once="night")
    asked = COUNT | {"rho": np.float64(0.01)}
    for items in (("7", "8"), np.array([7, 8])):
        with pytest.raises(AlreadyCharged):
            dp.count(
                numbers, **asked, items=items, l0=None, others=False, relative_error=0.1, budget=views, once="night"
            )


@pytest.mark.parametrize("other", [{"rho": 0.02}, {"k_bar": 99}, {"relative_error": 0.2}])
def test_a_promise_has_the_parameters_of_a_given_mechanism(views, other):
    def made(**parameters):
        return dp.PrivateCountRelease(**{"rho": 0.01, "delta": 1e-9} | parameters)

    columns = {"user": "user", "item": "page", "budget": views, "once": "night"}
    dp.count(LOG, **columns, mechanism=made())
    with pytest.raises(ParameterError, match="other parameters or columns"):
        dp.count(LOG, **columns, mechanism=made(**other))
    with pytest.raises(AlreadyCharged):
        dp.count(LOG, **columns, mechanism=made(k_bar=10_000))


@pytest.mark.parametrize("verb", VERBS)
def test_a_key_of_an_earlier_version_is_not_charged_again(views, verb, monkeypatch):
    """Earlier versions hashed the chosen mechanism with all of its parameters."""
    texts, sha256 = [], releasing._sha256
    with monkeypatch.context() as earlier:
        earlier.setattr(releasing, "_sha256", lambda text: texts.append(text) or sha256(text))
        earlier.setattr(Call, "_stated", lambda _: texts[-1])
        VERBS[verb](budget=views, once="night")
    assert len({*texts}) == 1
    with pytest.raises(AlreadyCharged):
        VERBS[verb](budget=views, once="night")
    assert len(views.history) == 1


def test_another_file_under_a_key_is_refused(views, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("user,page\n" + "".join(f"{n},home\n" for n in range(99)))
    dp.count("a.csv", **COUNT, budget=views, once="night")
    for same in ("a.csv", tmp_path / "a.csv", ["./a.csv"]):
        with pytest.raises(AlreadyCharged):
            dp.count(same, **COUNT, budget=views, once="night")
    for other in ("b.csv", ["a.csv", "b.csv"], "*.csv"):
        with pytest.raises(
            ParameterError, match=r"another input, which was a\.csv, and nothing is charged now"
        ) as error:
            dp.count(other, **COUNT, budget=views, once="night")
        assert error.value.names == ("once",)
    for dialect in ({"delimiter": ";"}, {"encoding": "utf-16"}, {"header": False}):
        with pytest.raises(ParameterError, match="another input, and nothing is charged now"):
            dp.count(dp.tables.CsvFiles(path="a.csv", **dialect), **COUNT, budget=views, once="night")
    with pytest.raises(AlreadyCharged):
        dp.count(dp.tables.CsvFiles(path="a.csv"), **COUNT, budget=views, once="night")
    assert len(views.history) == 1
    number, promise, files = views._chain.read().keys["views", "night"]
    assert (number > 1, len(promise), files, b"tmp" in views._chain.path.read_bytes()) == (True, 129, "a.csv", False)


def test_keys_of_earlier_versions_have_spaces_and_no_input(views, tmp_path):
    """Such a line is read as it was written: its key is the one without spaces, and its files alone are compared."""
    (tmp_path / "a.csv").write_text("user,page\n1,home\n")
    stated = hashlib.sha256(b"count(delta=1/1000000000, item='page', rho=1/100, user='user')").hexdigest()
    about = Provenance(verb="count", files="a.csv", once="night ", label="dark ")
    event = record.charging("charged", charge.Charge(1, 1), dp.CalibratedCounts(rho=0.01, delta=1e-9), about, stated)
    views._chain.append(lambda _: dataclasses.replace(event, dataset="views"))
    with pytest.raises(AlreadyCharged):
        dp.count(tmp_path / "a.csv", **COUNT, budget=views, once="night")
    with pytest.raises(ParameterError, match="another input"):
        dp.count(tmp_path / "b.csv", **COUNT, budget=views, once=" night")
    assert [views._is_charged(views._chain.read(), Provenance(replaces=name)) for name in ("night", "dark")] == [
        False
    ] * 2


def test_quotes_in_public_items_tell_promises_apart(views):
    dp.count(LOG, **COUNT, items=["a'1'b'"], budget=views, once="night")
    with pytest.raises(ParameterError, match="other parameters or columns"):
        dp.count(LOG, **COUNT, items=["a1b'"], budget=views, once="night")


def test_a_key_is_found_after_the_budget_is_spent(views):
    release = dp.count(LOG, **(COUNT | {"rho": 1}), budget=views, once="all")
    with pytest.raises(AlreadyCharged, match=release.digest):
        dp.count(LOG, **(COUNT | {"rho": 1}), budget=views, once="all")


def test_a_replacement_names_an_earlier_charge_and_costs_in_full(views):
    dp.count(LOG, **COUNT, budget=views, once="night 1", label="february")
    for name in ("night 1", "february"):
        dp.count(LOG, **COUNT, budget=views, once=f"after {name}", replaces=name)
    assert [row.replaces for row in views.history] == ["", "night 1", "february"]
    assert views.history[1].rho == views.history[0].rho
    with pytest.raises(ParameterError, match="no charge to views has the key or label 'night 2'"):
        dp.count(LOG, **COUNT, budget=views, replaces="night 2")
    with pytest.raises(AlreadyCharged):
        dp.count(LOG, **COUNT, budget=views, once="after night 1", replaces="night 1")
    assert len(views.history) == 3


def test_a_label_of_several_charges_names_none_of_them(views):
    for key in (None, "night 1", "night 2", "february"):
        dp.count(LOG, **COUNT, budget=views, once=key, label="february" if key != "february" else "march")
    # A key names one charge, even if others have it as their label.
    dp.count(LOG, **COUNT, budget=views, once="again", replaces="february")
    views = Ledger.open(views._chain.path).dataset("views")
    dp.count(LOG, **COUNT, budget=views, label="march")
    with pytest.raises(ParameterError, match=r"2 charges to views have the label 'march'.* keys are 'february': name"):
        dp.count(LOG, **COUNT, budget=views, replaces="march")
    assert len(views.history) == 6


def test_five_nights_are_five_lines(views, tmp_path):
    path = tmp_path / "visits.jsonl"
    path.write_text("\n".join(f'{{"user": {n}, "page": "a", "ts": "2026-02-01T10:00"}}' for n in range(9)))
    for night in range(1, 6):
        times = {"time": "ts", "since": f"2026-02-0{night}", "until": f"2026-02-0{night + 1}T12:00", "every": "1d"}
        release = dp.count(path, **COUNT, **times, budget=views)
    assert len({row.period for row in views.history}) == len({*repr(views.history).splitlines()}) - 1 == 5
    row = views.history[-1]
    assert (row.period, row.files) == ("2026-02-05 to 2026-02-06T12:00:00, per 1d", "visits.jsonl")
    assert row.columns == "users: user; items: page; times: ts"
    assert row.digest == release.digest


@pytest.mark.parametrize("name", ["label", "once", "replaces"])
@pytest.mark.parametrize("text", ["", " ", "a\nb", "\x1b[31mred", "a" * 201, "\u202egnp", "\ud800", 7, b"a"])
def test_hostile_labels_are_refused_before_anything_is_read(views, name, text):
    for budget in (views, None):
        with pytest.raises(ParameterError, match=f"{name} must be printable text of 1 to 200 characters"):
            dp.count("no such file.csv", **COUNT, budget=budget, **{name: text})
    assert views.history == []


def test_hostile_names_of_columns_and_files_are_escaped(views, tmp_path):
    column = "<script>\x1b[31m" + "a" * 10_000_000
    dp.count({"user": LOG["user"], column: LOG["page"]}, **(COUNT | {"item": column}), budget=views)
    (row,) = views.history
    assert row.columns.startswith("users: user; items: <script>\\x1b[31m")
    assert len(row.columns) == 200
    assert views._chain.path.stat().st_size < 5_000
    assert "\x1b" not in repr(views.history)
    assert "<script>" not in views.history._repr_html_()
    files = [tmp_path / "\x1b.csv", "logs/user=alice/*.csv"]
    assert Provenance.of("count", dp.Table(files, user="u", item="i")).files == "\\x1b.csv, *.csv"


def test_a_key_needs_a_ledger():
    for budget in (None, Budget(rho=1, delta=1e-6)):
        for name in ("once", "replaces"):
            with pytest.raises(ParameterError, match="Ledger"):
                dp.count(LOG, **COUNT, budget=budget, **{name: "night"})
    budget = Budget(rho=1, delta=1e-6)
    dp.count(LOG, **COUNT, budget=budget, label="night")
    assert budget.history[0].label == "night"


def test_ledgers_with_and_without_provenance_read_alike(views):
    """The core reads lines without provenance, and Python reads the others; both read the same sums."""
    generator = random.Random(1)
    for number in range(60):
        if generator.random() < 0.5:
            views.charge(dp.Guarantee(0.001, 0), made_by="another library")
        else:
            dp.select(LOG, **(COUNT | {"rho": 0.001}), l0=3, budget=views, once=f"n{number}", label="night")
    content = views._chain.path.read_bytes()
    book, head = ledger_format.parse(content), ledger_format.head_of(content[: ledger_format.HEAD_SIZE], "file")
    rows = []
    kept = ledger_format.extended(head, head.empty(), content[ledger_format.HEAD_SIZE :], "file", rows)
    assert (book.accounts, book.keys, book.labels) == (kept.accounts, kept.keys, kept.labels)
    assert [f"n{number}" for number in range(60) if ("views", f"n{number}") in book.keys] == [
        row.once for row in views.history if row.once
    ]


@pytest.mark.parametrize("about", [[], "text", {"once": 1}, {"once": ["a"]}, {"label": {}}])
def test_a_line_with_other_provenance_is_corrupt(views, about):
    dp.select(LOG, **COUNT, l0=3, budget=views)
    rows = [{"number": 1, "kind": "reserved", "about": about}]
    with pytest.raises(LedgerError, match="corrupt"):
        ledger_format.events_of(rows, "file")


def counted(path, key):
    """Release a count with a key; return whether it was drawn."""
    try:
        dp.select(LOG, **COUNT, l0=3, budget=Ledger.open(path, timeout=60).dataset("views"), once=key)
    except AlreadyCharged:
        return False
    return True


def keys(path):
    return [row.once for row in Ledger.open(path).dataset("views").history]


def killed(tell, path, key, place):
    """Charge a key in a process that kills itself before or after its n-th write to the ledger."""
    calls = 0

    def wrapped(write):
        def writing(*given):
            nonlocal calls
            calls += 1
            if calls == place // 2 + 1 and place % 2 == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            write(*given)
            if calls == place // 2 + 1:
                os.kill(os.getpid(), signal.SIGKILL)

        return writing

    for name in ("append", "overwrite"):
        setattr(LedgerFile, name, wrapped(getattr(LedgerFile, name)))
    tell(counted(path, key))


@forks
def test_a_killed_release_is_never_charged_again(tmp_path):
    """A release writes an event and a mark to reserve its charge, and both again when it is published."""
    again = []
    for place in range(8):
        path = tmp_path / f"ledger {place}"
        in_child(lambda path=path: Ledger.open(path).dataset("views", rho=10, delta=1e-6) and None)
        child, heard = start(killed, path, "night", place)
        assert [*lines(heard)] == []
        assert ended(child) == -signal.SIGKILL
        again.append(in_child(counted, path, "night"))
        assert in_child(counted, path, "night") is False
        assert in_child(keys, path) == ["night"]
    assert again == [True, *[False] * 7]


@forks
def test_processes_at_the_same_time_charge_a_key_once(tmp_path):
    path = tmp_path / "ledger"
    in_child(lambda: Ledger.open(path).dataset("views", rho=10, delta=1e-6) and None)
    for number in range(5):
        key = f"night {number}"
        children = [start(lambda tell, key=key: tell(counted(path, key))) for _ in range(4)]
        answers = [answer for _, heard in children for answer in lines(heard)]
        assert [ended(child) for child, _ in children] == [0] * 4
        assert sorted(answers) == [False, False, False, True]
    assert in_child(keys, path) == [f"night {n}" for n in range(5)]


def test_a_key_is_taken_under_the_lock(views, monkeypatch):
    """Another process charges the key after this one has looked: this one charges nothing."""
    monkeypatch.setattr(type(views), "_require_unnamed", lambda *_: None)
    assert counted(views._chain.path, "night")
    assert not counted(views._chain.path, "night")
    assert len(views.history) == 1
