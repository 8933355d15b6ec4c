"""The JSON schema of certificates: certificates of every kind of release match it, and damaged ones do not."""

import json
from importlib.resources import files

import jsonschema
import pytest

import discreet as dp

SCHEMA = json.loads((files("discreet") / "certificate.schema.json").read_text("utf-8"))
LOG = {
    "user": [user for user in range(4000) for _ in range(2)],
    "page": ["home", "help"] * 4000,
    "country": ["DE", "DE"] * 4000,
    "price": [3, 4] * 4000,
}
ASKED = {"user": "user", "item": "page", "delta": 1e-6}


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
    "ranks": lambda: dp.top_k(LOG, **ASKED, k=2, epsilon=1),
    "names": lambda: dp.select(LOG, **ASKED, l0=2, epsilon=1),
    "nothing": lambda: dp.count({"user": [1], "page": ["x"]}, **ASKED, rho=1),
    "sums": lambda: dp.mechanisms.DiscoverAndSum(rho=1, delta=1e-6, l0=2, low=0, high=9).release(
        LOG, user="user", item="page", value="price"
    ),
    "a round": step_of_a_stream,
    "replaced users": lambda: dp.mechanisms.Replacement.from_rho(dp.GaussianThreshold, rho=1, delta=1e-6, l0=2).release(
        dp.Histogram.from_table(LOG, user="user", item="page", l0=2)
    ),
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


def test_an_epsilon_needs_its_delta():
    content = dp.count(LOG, **ASKED, epsilon=1, l0=1).certificate
    content = json.loads(json.dumps(content))
    assert valid(content)
    assert "epsilon" in content
    assert not valid({key: value for key, value in content.items() if key != "total_delta"})


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert all(field["description"].endswith(".") for field in SCHEMA["properties"].values())
