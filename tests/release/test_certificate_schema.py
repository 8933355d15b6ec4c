"""The JSON schema of certificates: certificates of every kind of release match it, and damaged ones do not."""

import hashlib
import json
from contextlib import nullcontext
from importlib.resources import files

import jsonschema
import pytest

import discreet as dp
from discreet.errors import InputError, ParameterError
from discreet.release import export
from discreet.release.made_by import facts_of
from discreet.release.release import changed

SCHEMA = json.loads((files("discreet") / "certificate.schema.json").read_text("utf-8"))
LOG = {
    "user": [user for user in range(4000) for _ in range(2)],
    "page": ["home", "help"] * 4000,
    "country": ["DE", "DE"] * 4000,
    "price": [3, 4] * 4000,
}
ASKED = {"user": "user", "item": "page", "delta": 1e-6}


THRESHOLD = dp.GaussianThreshold(sigma=3.0, delta=1e-6, l0=2)


def table():
    return dp.Histogram.from_table(LOG, user="user", item="page")


def bounded():
    return dp.Histogram.from_table(LOG, user="user", item="page", l0=2)


def valid(content):
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(content)


def step_of_a_stream():
    return dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=9).start().step([["home"]] * 900)


RELEASES = {
    "count": lambda: dp.count(LOG, **ASKED, rho=1),
    "clipped count": lambda: dp.count(LOG, **ASKED, epsilon=1, l0=1),
    "found bound": lambda: dp.count(LOG, **ASKED, rho=1, l0="auto"),
    "periods": lambda: dp.count({**LOG, "day": ["2026-01-31"] * 8000}, **ASKED, rho=1, time="day", every="1d"),
    "two columns": lambda: dp.count(LOG, **{**ASKED, "item": ["country", "page"]}, rho=1),
    "public items": lambda: dp.count(LOG, **ASKED, rho=1, items=["home", "imprint"]),
    "public items without delta": lambda: dp.count(LOG, **{**ASKED, "delta": None}, epsilon=1, items=["home"]),
    "public and other items": lambda: dp.count(LOG, **ASKED, rho=1, items=["home"], others=True),
    "public ranks": lambda: dp.top_k(LOG, **ASKED, k=1, rho=1, items=["home", "imprint"]),
    "ranks": lambda: dp.top_k(LOG, **ASKED, k=2, epsilon=1),
    "names": lambda: dp.select(LOG, **ASKED, l0=2, epsilon=1),
    "nothing": lambda: dp.count({"user": [1], "page": ["x"]}, **ASKED, rho=1),
    "sums": lambda: dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-6, l0=2, low=0, high=9).release(
        LOG, user="user", item="page", value="price"
    ),
    "sums of a found bound": lambda: dp.sum(
        LOG, user="user", item="page", value="price", bounds=(0, 9), rho=1, delta=1e-6
    ),
    "sums with found bounds": lambda: dp.sum(
        LOG, user="user", item="page", value="price", bounds="auto", rho=1, delta=1e-6
    ),
    "public sums with found bounds": lambda: dp.sum(
        LOG, user="user", item="page", value="price", bounds="auto", items=["home"], l0=1, rho=1
    ),
    "aggregates": lambda: dp.aggregate(
        LOG, user="user", item="page", rows=2, sums={"price": (0, 9)}, means={"price": (0, 9)}, l0=2, rho=1, delta=1e-6
    ),
    "public aggregates": lambda: dp.aggregate(LOG, user="user", item="page", rows=2, items=["home"], rho=1),
    "public sums": lambda: dp.sum(LOG, user="user", item="page", value="price", items=["home"], bounds=(0, 9), rho=1),
    "a round": step_of_a_stream,
    "replaced users": lambda: dp.mechanisms.Replacement.from_rho(dp.GaussianThreshold, rho=1, delta=1e-6, l0=2).release(
        bounded()
    ),
    "kept pairs": lambda: dp.mechanisms.KeptPairs(l0=3, most=60, rho=1).release(
        dp.Histogram.from_counts(range(4000), [4] * 4000, l0=1, linf=60, complete=True)
    ),
    "sums without l0": lambda: dp.mechanisms.PrivateSumRelease(
        counting=dp.PrivateCountRelease(rho=9, delta=1e-6), low=0, high=9
    ).release(LOG, user="user", item="page", value="price"),
    "confirmed": lambda: dp.ConfirmedCounts(rho=1, delta=1e-6).release(table()),
    "confirmed, replaced users": lambda: dp.mechanisms.Replacement.from_rho(
        dp.ConfirmedCounts, rho=1, delta=1e-6
    ).release(table()),
    "private count release": lambda: dp.PrivateCountRelease(rho=1, delta=1e-6).release(table()),
    "Plume": lambda: dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2).release(LOG, user="user", item="page"),
    "bound": lambda: dp.mechanisms.ContributionBound(epsilon=1).release(LOG, user="user", item="page"),
    "noisy top k": lambda: dp.GaussianTopK(sigma=3.0, delta=1e-6, l0=2, k_bar=5).release(bounded()),
    "truncated geometric": lambda: dp.TruncatedGeometric(epsilon=1, delta=1e-6, l0=2).release(bounded()),
    "drawn from a list": lambda: dp.mechanisms.ExponentialMechanism(items=("home", "x"), scale=9.0, k=1).release(
        bounded()
    ),
    "known and others": lambda: dp.mechanisms.KnownItems(mechanism=THRESHOLD, items=("home", "x")).release(bounded()),
    "share": lambda: dp.mechanisms.CountsWithShare.from_rho(rho=1, delta=1e-6, l0=2).release(
        LOG, user="user", item="page"
    ),
    "discover and peel": lambda: dp.top_k(LOG, **ASKED, k=2, rho=1, method="discover+peel", l0=2),
}


@pytest.mark.parametrize("kind", RELEASES)
def test_the_certificate_of_a_release_matches_the_schema(kind, tmp_path):
    RELEASES[kind]().write(tmp_path / "rows.csv", certificate=True)
    content = json.loads((tmp_path / "rows.csv.certificate.json").read_text("utf-8"))
    jsonschema.validate(content, SCHEMA, jsonschema.Draft202012Validator)
    assert {*content} <= {*SCHEMA["properties"]}
    assert not valid({**content, "seeded": True})
    assert not valid({**content, "claimed": True})
    assert not valid({**content, "digest": content["digest"][1:]})
    assert not valid({**content, "rho": "1"})
    for name in SCHEMA["required"]:
        assert not valid({key: value for key, value in content.items() if key != name})


OTHER_VALUES = [None, True, -1, 7, 0.5, "sums", "none", "laplace", [3, 1.0], {}, [[]]]
# No release has these values of a claim.
IMPOSSIBLE = {
    **{name: [True, -1, 0.5, "1", []] for name in ("calls", "above", "part_of")},
    **{name: [None, True, -1, 1e9, "1"] for name in ("spent_rho", "spent_delta")},
    "stopped_early": [None, 0, "false"],
    "users": [0, {}, [4000], [4000, 0.0], [4000, 99.0], [4000, "7.0"]],
    "notes": [None, "note", [1]],
    "kept_share": [0.5, [2, 0.1], [0.5, 0.0]],
    "round": [None, -1, 0.5, 99],
}


def near(value):
    """Return values that differ little from the value of a field."""
    if type(value) is int:
        return [value + 1, 2 * value]
    if type(value) is float:
        return [value / 2, value * (1 - 1e-6)]
    return [value + " "] if isinstance(value, str) else [value + value] if isinstance(value, list) and value else []


MORE = ("most", "summed", "part_of", "l0", "kept_share", "round", "every", "epsilon")


@pytest.mark.parametrize("kind", [name for name in RELEASES if name not in ("periods", "two columns", "nothing")])
def test_each_field_is_recomputed_or_named_as_a_claim(kind, tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "rows.csv.certificate.json"
    RELEASES[kind]().write(path, certificate=True)
    content, claims = json.loads(place.read_text("utf-8")), dp.verify(path).claims
    assert f"not verifiable: {', '.join(claims)}" in str(dp.verify(path))
    for name in {*content, *MORE}:
        given = content.get(name)
        values = [*OTHER_VALUES, *near(given)] if name not in claims else IMPOSSIBLE.get(name, [])
        for value in values:
            if value == given and (type(value) is type(given) or name in claims):
                continue
            place.write_text(json.dumps({**content, name: value}))
            with pytest.raises(InputError):
                pytest.fail(f"{name}: {value} is verified: {dp.verify(path)}")
        if name in content and name not in ("part_of", "l0", "kept_share", "every", "provenance"):
            place.write_text(json.dumps({field: content[field] for field in content if field != name}))
            with pytest.raises(InputError):
                pytest.fail(f"a certificate without {name} is verified: {dp.verify(path)}")
    for name in ("kind", "listed", "most", "part_of"):  # earlier versions lack them
        content.pop(name, None)
    place.write_text(json.dumps({**content, "version": "0.0.9"}))
    assert {*dp.verify(path).claims} == {*claims, "guarantee", "measure"}


def other(column, value, content):
    """Return values of a row that no release of the mechanism has."""
    if column == "sigma":
        # The sigmas of other items depend on a number of users that is not published.
        return [] if content["made_by"].startswith("CountsWithPublicItems") else [value * 1.001]
    if column == "rank":
        return [1000]
    if column == "method":
        return ["counted"]
    if column == "count":
        return [] if content["above"] is None else [content["above"]]
    return ["another item"] if content["listed"] == "all" and "items=(" in content["made_by"] else []


@pytest.mark.parametrize("kind", RELEASES)
def test_rows_that_contradict_the_mechanism_are_refused(kind, tmp_path):
    path, place = tmp_path / "rows.jsonl", tmp_path / "rows.jsonl.certificate.json"
    RELEASES[kind]().write(path, certificate=True)
    dp.verify(path)
    content, lines = json.loads(place.read_text("utf-8")), path.read_text("utf-8")
    *before, last = [json.loads(line) for line in lines.splitlines()] or [{}]
    is_known = "KnownItems" in content["made_by"] and last["item"] in ("home", "x", "imprint")
    for column, value in last.items():
        for wrong in [] if column == "count" and is_known else other(column, value, content):
            columns = [(name, [row[name] for row in [*before, {**last, column: wrong}]], "") for name in last]
            export.write(path, columns, {})
            place.write_text(json.dumps({**content, "digest": export.digest(columns)}))
            with pytest.raises(InputError):
                pytest.fail(f"{column}: {wrong} is verified: {dp.verify(path)}")


@pytest.mark.parametrize(
    ("made_by", "rows"),
    [("ranks", "count"), ("ranks", "names"), ("names", "count"), ("names", "ranks"), ("count", "ranks")],
)
def test_the_columns_are_those_of_the_mechanism(made_by, rows, tmp_path):
    made = RELEASES[made_by]()
    fields = {name: getattr(made, name) for name in ("made_by", "guarantee", "noise", "spent")}
    changed(RELEASES[rows](), **fields).write(tmp_path / "rows.csv", certificate=True)
    with pytest.raises(InputError, match="does not imply: columns"):
        dp.verify(tmp_path / "rows.csv")


def without_last_cell(text):
    return "".join(line.rpartition(",")[0] + "\n" for line in text.splitlines())


def without_last_row(text):
    return "".join(text.splitlines(True)[:-1])


@pytest.mark.parametrize(
    ("kind", "change", "fields"),
    [
        ("ranks", without_last_cell, {}),
        ("count", without_last_cell, {}),
        ("clipped count", lambda text: text.replace("\n", ",1\n").replace("sigma,1", "sigma,method"), {}),
        ("clipped count", lambda text: text.replace("home,", "home,0"), {}),
        ("public items", without_last_row, {}),
        ("public items without delta", without_last_row, {}),
        ("public sums", without_last_row, {}),
        ("public aggregates", without_last_row, {}),
        ("kept pairs", without_last_row, {}),
        ("bound", without_last_row, {}),
        ("known and others", lambda text: "item,count,sigma\n", {}),
        ("count", str, {"clipped": True, "measure": "counts of clipped users; sigma is the noise alone"}),
        ("count", str, {"clipped": True, "version": "0.0.9"}),
        ("count", str, {"users": [4000, 10**400]}),
        ("public items", str, {"users": [4000, 10**400]}),
        ("sums", str, {"part_of": 2**70}),
    ],
)
def test_a_forged_file_with_a_right_digest_is_refused(kind, change, fields, tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "rows.csv.certificate.json"
    RELEASES[kind]().write(path, certificate=True)
    path.write_text(change(path.read_text()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    place.write_text(json.dumps({**json.loads(place.read_text()), "digest": digest, **fields}))
    with pytest.raises(InputError):
        pytest.fail(f"{dp.verify(path)}")


def test_a_certificate_has_no_key_twice_and_unknown_keys_are_claims(tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "rows.csv.certificate.json"
    RELEASES["count"]().write(path, certificate=True)
    text = place.read_text()
    place.write_text(text.replace("{", '{"audited_by": "nobody", "\\u001b": 1,', 1))
    assert dp.verify(path).claims[-2] == "audited_by"
    assert str(dp.verify(path)).replace("\n", "").isprintable()
    place.write_text(text.replace("{", '{"seeded": true,', 1))
    for read in (dp.verify, dp.Release.read):
        with pytest.raises(InputError):
            read(path)


@pytest.mark.parametrize("change", [{"clipped": False}, {"clipped": False, "l0": None}])
@pytest.mark.parametrize("kind", ["clipped count", "found bound", "sums", "a round"])
def test_clipped_counts_that_a_file_denies_stay_clipped(kind, change, tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "rows.csv.certificate.json"
    RELEASES[kind]().write(path, certificate=True)
    content = json.loads(place.read_text("utf-8"))
    denied = {**content, **change, "kept_share": None}
    place.write_text(json.dumps(denied))
    with pytest.raises(InputError, match=r"clipped|share"):
        dp.verify(path)
    if "l0" not in change:
        with pytest.raises(InputError, match="l0"):
            dp.Release.read(path)
        return
    place.write_text(json.dumps({**denied, "measure": "counts of users", "notes": []}))
    found = dp.Release.read(path)
    assert found.clipped
    assert "are taken for clipped ones" in found.notes[0]
    with pytest.raises(ParameterError, match="no interval"):
        found.interval()
    with pytest.raises(InputError, match=r"clipped|measure") if kind != "clipped count" else nullcontext():
        assert "clipped" in dp.verify(path).claims


BOUNDED = "GaussianThreshold(sigma=3.0, delta=1e-06, l0=2)"


@pytest.mark.parametrize(
    ("made_by", "bounds_items"),
    [
        (BOUNDED, True),
        ("GaussianCounts(items=('a', 'b', 'c'), sigma=2.0, l0=2, linf=1)", True),
        ("LaplaceCounts(items=('a',), scale=2.0, l0=None, linf=1)", False),
        ("CorrelatedCounts(items=('a',), rho=1.0)", False),
        ("Aggregates(rho=1.0, delta=None, l0=None, rows=2, items=('a',))", False),
        ("Aggregates(rho=1.0, delta=1e-06, l0=2, rows=2, items=None)", True),
        (f"KnownItems(mechanism={BOUNDED}, items=('a',), least=None)", True),
        ("ConfirmedCounts(rho=1.0, delta=1e-06)", False),
        ("Refinement(rho=1.0) of ConfirmedCounts(rho=1.0, delta=1e-06)", False),
        (f"Refinement(rho=1.0) of {BOUNDED}", True),
    ],
)
def test_a_file_implies_a_bound_that_its_mechanism_has(made_by, bounds_items):
    assert facts_of(made_by, None, None).bounds_items == bounds_items


@pytest.mark.parametrize(
    "text",
    [
        "Unknown(l0=None)",
        "Refinement() of " * 100_000 + "Unknown()",
        "Mechanism()",
        "Stream()",
        "GaussianThreshold(sigma=print(1), delta=1e-06, l0=2)",
        "GaussianThreshold(3.0, 1e-06, 2)",
        "__import__('os').system(command='true')",
        "KnownItems(mechanism=" * 9_000,
    ],
    ids=lambda text: text[:30],
)
def test_a_text_that_is_no_mechanism_implies_no_facts(text):
    assert facts_of(text, None, None) is None


def test_texts_of_a_certificate_cannot_change_a_terminal(tmp_path):
    path, place = tmp_path / "rows.csv", tmp_path / "rows.csv.certificate.json"
    RELEASES["count"]().write(path, certificate=True)
    content = json.loads(place.read_text("utf-8"))
    for name in content:
        for value in ("\x1b[31m\u202e", ["\x1b[31m"], [["item", "\x1b[31m"]], {"\x1b[31m": "\x1b[31m"}):
            place.write_text(json.dumps({**content, name: value}))
            for read in (dp.verify, dp.Release.read):
                try:
                    shown = repr(read(path))
                except InputError as error:
                    shown = str(error)
                assert shown.replace("\n", "").isprintable(), (name, read)


def test_an_epsilon_needs_its_delta():
    content = dp.count(LOG, **ASKED, epsilon=1, l0=1).certificate
    content = json.loads(json.dumps(content))
    assert valid(content)
    assert "epsilon" in content
    assert not valid({key: value for key, value in content.items() if key != "total_delta"})


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert all(field["description"].endswith(".") for field in SCHEMA["properties"].values())
