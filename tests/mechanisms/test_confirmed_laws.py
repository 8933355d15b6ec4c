"""The theorem of confirmed counts, tested with exact laws.

The law of the reference meets the theorem. The laws of references that are wrong on purpose do not.
"""

import math

import numpy as np
import pytest
from confirmed_laws import Case, Table, changed, law, margin, random_case, random_pair, reach, worst

from discreet import _core

MODES = ["centred", "plain", "replace"]


def pairs(mode, count, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield random_case(rng, mode), *random_pair(rng, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [75, pytest.param(10_000, marks=pytest.mark.statistical)])
def test_the_exact_law_meets_the_theorem(mode, count):
    for case, first, second in pairs(mode, count):
        assert worst(case, first, second) <= 0


def one_item_each(mode="centred", **changes):
    """Return a case with one slot and a tie: users {a} and {b}, and the neighbour with only {b}."""
    parameters = {
        "k_bar": 1,
        "epsilon": 1.0,
        "variance": 0.5,
        "bound_variance": 0.3,
        "delta": 0.3,
        "steps": 1,
        "room": 6,
    }
    case = Case(mode, **{**parameters, **changes})
    return case, Table([{"a"}, {"b"}]), Table([{"b"}])


def test_a_tie_for_one_slot_uses_delta():
    case, first, second = one_item_each()
    assert worst(case, first, second) <= 0
    whole, part = law(case, first), law(case, first, second)
    least = min(whole.get(transcript, (0.0,))[0] / chance for transcript, (chance, *_) in part.items() if chance > 1e-9)
    assert 1 - case.delta <= least < 1 - case.delta / 100


def test_the_probabilities_of_a_law_sum_to_one():
    for mode in MODES:
        for case, first, second in pairs(mode, 5):
            for found in (law(case, first), law(case, first, second)):
                assert math.isclose(sum(chance for chance, *_ in found.values()), 1, rel_tol=1e-9)


def edited(*edits):
    return {"module": changed(*edits)}


NEXT = "int(counts[following]) if following < len(counts)"
AFTER = "int(counts[following + 1]) if following + 1 < len(counts)"
DRAW = "        drawn = slots.draw(rng, level.gamma)\n"
STOP = "        if not any(slots.members):\n            return ended('items')\n"
# Each entry breaks the fact that its key states. N is the number of users. A hidden item is in the slots of only
# one neighbour.
LIES = {
    "a hidden item can exceed the items outside by one": {"margin": lambda sigma, delta: margin(sigma, delta) - 1},
    "the bound has noise": {"reach": lambda sigma, delta: 0},
    "there are exactly k_bar slots": edited(("self.dummies = k_bar - self.following", "self.dummies = 0")),
    "items may run out in secret": edited((DRAW, STOP + DRAW)),
    "the next count is the bound": edited((NEXT, AFTER)),
    "a step costs its price": edited(("        spent += price\n", "        spent += price // 2\n")),
    "the bound costs its price": edited(("            spent += level.outside.price\n", "            spent += 0\n")),
    "each step has its share of delta": "whole delta",
    "a margin belongs to its noise": edited(
        ("value >= bound + 2 + plan.margin(sigma, plan", "value >= bound + 2 + plan.margin(level.steps[3].sigma, plan")
    ),
    "a rejected count is forgotten": edited(
        ("position -= 48 if rows else 112", "position -= 48 if value % 2 else 112")
    ),
    "the level follows published counts": edited(
        (
            "= _moved(plan, position, number, value)",
            "= _moved(plan, position, number, 16 + 16 * int(counts[rows[-1]]))",
        ),
        ("plan.octaves(value + plan.noisy_users)", "plan.octaves(value)"),
        ("if value + plan.noisy_users > 0", "if value > 0"),
        (" - 256 * (plan.factor - 1))", ")"),
    ),
    "a cut table ends before its last row": "cut",
    "users who are in a count are in N": "missing",
}


# The seeds that catch an error first. Each other error is caught by seed 0.
FIRST = {"a rejected count is forgotten": 20, "the level follows published counts": 2}


@pytest.mark.parametrize("lie", LIES)
def test_a_wrong_reference_is_caught(lie):
    assert any(caught(LIES[lie], seed) for seed in range(FIRST.get(lie, 0), 40))


def caught(how, seed):
    rng = np.random.default_rng(seed)
    mode = "centred" if how == "missing" else MODES[seed % 3]
    candidates = [(random_case(rng, mode), *random_pair(rng, mode, int(how == "missing"))) for _ in range(12)]
    candidates.append(one_item_each("plain" if mode == "plain" else "centred", steps=2))
    for case, first, second in candidates:
        changes = how
        if how == "whole delta":
            changes = {"step_deltas": [case.delta] * len(case.step_deltas), "bound_deltas": [case.delta] * 16}
        elif how == "cut":
            case.cut, changes = case.k_bar, {"limit": None}
        elif how == "missing":
            changes = {}
        if worst(case, first, second, **changes) > 0:
            return True
    return False


def test_a_reach_from_one_tail_is_caught():
    def single(sigma, delta):
        return max(math.ceil(sigma + 1), _core.Noise.discrete_gaussian(sigma).quantile(delta))

    found = []
    for delta in np.geomspace(0.01, 0.3, 40).tolist():
        case, first, second = one_item_each(bound_variance=1.5, delta=delta, room=12)
        sigma, share = case.levels[11].outside.sigma, case.bound_deltas[11]
        if single(sigma, share) < reach(sigma, share):
            found.append(worst(case, first, second, reach=single))
    assert max(found) > 0


def test_a_replacement_priced_as_a_removal_is_caught():
    parameters = {
        "k_bar": 2,
        "start": 0,
        "epsilon": 1.5,
        "variance": 4.0,
        "bound_variance": 25.0,
        "delta": 0.02,
        "steps": 1,
        "room": 200,
    }
    first, second = (Table([{"a"}] * (60 + more) + [{"b"}] * (61 - more)) for more in (0, 1))
    assert worst(Case("replace", **parameters), first, second) <= 0
    assert worst(Case("replace", ranges=1, **parameters), first, second) > 0
