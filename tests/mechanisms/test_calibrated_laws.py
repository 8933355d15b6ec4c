"""The theorem of calibrated counts, tested with exact laws of the weighted counts and with replays of all other steps.

The law of the reference meets the theorem. The laws of references that are wrong on purpose do not.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from calibrated import plan
from calibrated_laws import Case, beyond, changed, loss

from discreet import _core
from discreet.laws.calibrated_counts import chosen, thresholded
from discreet.laws.calibrated_replays import Past, Replay, copied, replayed
from discreet.reference import calibrated_counts as reference
from discreet.testing import seeded_rng
from discreet.theorems import calibrated_counts as theorem
from discreet.theorems import rogers2024

MANY = pytest.param(10_000, marks=pytest.mark.statistical)


def cases(count, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield Case(rng)


def pasts(count, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield Past(rng, plan(math.exp(rng.uniform(-1, 3)), 1e-3))


@pytest.mark.parametrize("count", [100, MANY])
def test_the_law_of_the_weights_meets_the_theorem(count):
    used = [beyond(case, case.step()) for case in cases(count)]
    assert max(by for by, _, _ in used) <= 1e-9
    # Both parts of the theorem are tight.
    assert max(delta for _, delta, _ in used) > 0.95
    assert max(divergence for _, _, divergence in used) > 0.99


@pytest.mark.parametrize("count", [300, MANY])
def test_all_measurements_cost_what_they_are_charged(count):
    losses = [loss(past) for past in pasts(count)]
    assert max(losses) <= 0
    assert max(losses) == pytest.approx(0, abs=1e-12)


def test_the_replays_take_all_paths():
    seen, reference = Counter(), copied()
    for past in pasts(120):
        draws = Replay(np.random.default_rng(past.seed))
        found = replayed(reference, past, past.heads(reference, past.first), past.chosen, draws)
        names = [name for name, _, _ in draws.steps]
        seen["continues"] += found.continues
        seen["nearly none"] += found.nearly_none and not found.continues
        seen["no rows"] += not found.continues and not len(found.rows)
        seen["bands"] += "threshold" in names and len(names) - names.index("threshold") > 4
        seen["stuck"] += past.stuck
        seen["alone"] += past.alone and not found.continues
        seen["looks"] += not past.alone and found.continues and names.count("measure") > 2
    assert len(seen) == 7
    assert min(seen.values()) >= 5, seen


def test_the_law_has_the_weights_and_the_rule_of_the_reference():
    labels = "abc"
    for case in cases(12, seed=3):
        step = case.step()
        ways = [chosen(place, items, case.most) for place, items in enumerate(case.users)]
        law, released = thresholded(step, case.users, 0, [])[0], {}
        for way in itertools.product(*ways):
            kept = [["abc".index(label) for label in items] for items, _ in way]
            chance = math.prod(share for _, share in way)
            sums = reference.weighed(kept, 3, case.most, step.weight, lambda lists, most: lists)
            present = sorted({label for items in case.users for label in items})
            for cells in itertools.product((False, True), repeat=len(present)):
                found = chance
                for label, passes in zip(present, cells, strict=True):
                    weight = int(sums[labels.index(label)])
                    passing = step.threshold.chance(weight) if weight else 0.0
                    found *= passing if passes else 1 - passing
                released[cells] = released.get(cells, 0.0) + found
        size = round(len(law) ** (1 / max(len(present), 1)))
        joint = law.reshape((size,) * len(present))
        for cells, chance in released.items():
            part = joint[tuple(slice(1, None) if passes else 0 for passes in cells)]
            assert float(np.sum(part)) == pytest.approx(chance, abs=1e-12)


def test_the_reference_releases_weights_above_the_threshold():
    weights = np.array([4, 0, 9, 7, 5])
    items, noisy = reference.named(weights, 5, lambda stream, n: np.array([1, -3, -2, 1])[:n], seeded_rng(1))
    assert items.tolist() == [2, 4]
    assert noisy.tolist() == [6, 6]


def upper(number, full, bits):
    """Return the weight rounded up."""
    return min(1 << bits, math.isqrt(max((full << (2 * bits)) // number - 1, 0)) + 1)


def by_place(place, items, most):
    """Choose items that depend on the user's place in the table."""
    start = place % max(len(items), 1)
    return [(tuple((items[start:] + items[:start])[:most]), 1.0)]


def threshold_of(case, **changes):
    given = {"full": case.full, "most": case.most, "bits": case.bits, "delta": case.delta, **changes}
    return theorem.threshold(case.step().noise, given["full"], given["most"], given["bits"], given["delta"])


# Each entry breaks the fact that its key states.
LIES = {
    "the threshold covers all numbers of items": lambda case: case.step(
        threshold=threshold_of(case, most=min(case.full, case.most))
    ),
    "weights are rounded down": lambda case: case.step(weight=lambda number: upper(number, case.full, case.bits)),
    "at most K items weigh": lambda case: case.step(most=9, weight=case.step().weight),
    "a choice does not depend on the place": lambda case: case.step(choices=by_place),
    "the threshold has its own share of delta": lambda case: case.step(
        threshold=threshold_of(case, delta=case.delta * 1.4)
    ),
    "the noisy weight exceeds the threshold": lambda case: case.step(
        threshold=_core.Threshold(case.step().noise, case.step().threshold.value - 1)
    ),
    "the noise has the scale of its price": lambda case: Case.step(case, price=1.2),
    "a user with many items weighs less": lambda case: case.step(weight=lambda number: 1 << case.bits),
}


@pytest.mark.parametrize("lie", LIES)
def test_wrong_weights_are_caught(lie):
    assert any(beyond(case, LIES[lie](case))[0] > 1e-6 for case in cases(1500))


HEAVY = "heavy = (heavy_users(heads.lists, full, heads.users, sigma, rng) + noisy_users) / 2"
SEVERAL = "several = (heavy_users(heads.lists, 1, heads.users, sigma, rng) + users[0]) / 2"
REACH = "reach = prices.reach(heads.number, threshold / 2**bits)"
LOOK = "(weight / 2**coarse + noisy_users) / 2 < prices"
SINGLE = "weights = weighed(heads.lists, size, 1, lambda m: int(prices.weight(m, 1, bits)), kept)"
VALUE = "value = ordered(counts[band.start : band.stop] - offset, rank)"
USERS = "counts, users = _counts(rest, size), sum(map(bool, lists))"
RANK = "ordered(counts[band.start : band.stop] - offset, rank + 1)"
REPLAYED = {
    "items of A do not weigh": [
        ("item not in confirmed]", "True]"),
        ("sums[item] += weight(len(items))", "sums[item] += weight(max(1, sum(other < 5 for other in items)))"),
    ],
    "the decision follows the published number of heavy users": [
        (HEAVY, f"{HEAVY}\n    heavy = sum(len(items) > full for items in heads.lists)"),
    ],
    "the decision follows the published number of users with several items": [
        (SEVERAL, f"{SEVERAL}\n        several = sum(len(items) > 1 for items in heads.lists)"),
    ],
    "the reach follows the published l": [
        (REACH, f"{REACH} * np.mean([len(items) for items in heads.lists]) / full"),
    ],
    "the decision follows the published number of users": [
        ("noisy_users < prices.least_users", "heads.users < prices.least_users"),
    ],
    "the decision follows the published weight": [
        (LOOK, "ordered(weights, len(weights) - prices.RANK) / 2**bits < prices"),
    ],
    "users with several items are charged": [("        spent += prices.ordered_price(sigma)\n", "")],
    "a single item is charged": [("spent + prices.weights_price(scale, 1))", "spent)")],
    "a single item weighs": [(SINGLE, SINGLE.replace("size, 1", "size, 16").replace("(m, 1", "(m, 16"))],
    "order statistics are charged": [("    spent += price\n", "")],
    "the look is charged": [("        spent += look_price\n", "")],
    "heavy users are charged": [("    spent += prices.ordered_price(sigma)\n    none", "    none")],
    "the selection is charged": [("    spent += plan.selection_price\n", "")],
    "the second number of users is charged": [("spent += plan.heads.variance_price(again)", "spent += 0")],
    "weights are charged": [("    spent += prices.weights_price(scale, full)\n", "")],
    "medians are of released items": [
        (VALUE, "value = ordered(heads.counts[heads.counts > 0] - int(offset[0]), rank)"),
    ],
    "one rank is measured": [(VALUE, f"{VALUE} + {RANK}")],
    "N counts every user with a row": [
        (USERS, USERS.replace("map(bool, lists)", "not confirmed.isdisjoint(items) for items in lists")),
    ],
    "order statistics are measured less N": [("2 * value - unit * users, ", "2 * value, ")],
    "bands follow published values": [
        ("ratio = plan.estimator.bands(values)", "ratio = plan.estimator.bands(np.sort(counts + 0.5)[::-1])"),
    ],
    "offsets follow published values": [
        ("plan.estimator.offsets(own, ratio), band, size // 2", "2 * counts[band.start : band.stop], band, size // 2"),
    ],
    "the ratio follows the published median": [
        ("plan.estimator.ratio_of(ratio, median, band.centre)", "float(np.median(counts)) / band.centre"),
    ],
    "a user weighs by the items of the choice": [("weight(len(items))", "weight(1)")],
    "the largest weight is a unit": [("(bits - coarse)\n", "bits << coarse + 1\n")],
}


@pytest.mark.parametrize("lie", REPLAYED)
def test_a_wrong_step_is_caught(lie):
    module = changed(*REPLAYED[lie])
    assert any(loss(past, module) > 0 for past in pasts(3000))


HARMLESS = {
    "the sum of two ranks less N": [
        (VALUE, f"value = ({VALUE.removeprefix('value = ')}, {RANK})"),
        (
            "return (measured(value, 1, heads.users, sigma, rng) + heads.noisy_users) / 2",
            "return (noised(sum(value) - heads.users, 2 * sigma, rng) + heads.noisy_users) / 2",
        ),
    ],
    "N of the users with items outside A": [(USERS, USERS.replace("bool, lists", "bool, rest"))],
    "the look has another rank": [("len(weights) - prices.RANK", "len(weights) - prices.RANK + heads.number")],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_variant_passes(name):
    module = changed(*HARMLESS[name])
    assert max(loss(past, module) for past in pasts(150)) <= 0


def test_clipped_counts_are_harmless():
    def heads_of(module, users):
        heads = Past.heads(past, module, users)
        kept = past.chosen(heads.lists, 2)
        return heads._replace(counts=np.bincount([item for items in kept for item in items], minlength=past.size))

    for past in pasts(150):
        past.heads = heads_of
        assert loss(past) <= 0


def test_units_are_those_of_confirmed_counts():
    assert theorem.share_of(1.0, 0.5) == rogers2024.budget_units(1.0) // 2
