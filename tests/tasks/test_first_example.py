"""The first example of the README: the default is the best choice for its data."""

import re
from pathlib import Path

import discreet as dp
from discreet.testing import seeded_rng

README = Path(__file__).resolve().parents[2] / "README.md"


def good(release, log):
    """Return the number of counts within 10 % of the truth."""
    users = {}
    for user, item in zip(log["user"], log["item"], strict=True):
        users.setdefault(item, set()).add(user)
    return sum(abs(count - len(users[item])) <= 0.1 * len(users[item]) for item, count in release)


def test_the_default_gives_more_good_counts_than_any_bound(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)[1]
    found = {}
    exec(example, found)
    assert [line[:5] for line in capsys.readouterr().out.splitlines()[:3]] == ["page "] * 3
    asked = {"user": "user", "item": "item", "rho": 1.0, "delta": 1e-6}
    bounded = [dp.count(found["log"], **asked, l0=l0) for l0 in (1, 3, 10, 30, 100, 300, 1000, 3000)]
    # The default is seeded. The best bound has about 110 good counts with a standard deviation below 8, so the chance
    # of a failure is below that of (1.6 * 110 - 110) / 8 = 8 deviations, 1e-15.
    table = dp.Table(found["log"], user="user", item="item").read()
    for seed in range(4):
        release = dp.CalibratedCounts(rho=1.0, delta=1e-6).release(table, rng=seeded_rng(seed))
        assert good(release, found["log"]) > 220
    assert max(good(release, found["log"]) for release in bounded) < 220 / 1.25
