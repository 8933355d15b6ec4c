"""The first example of the README: the default is the best choice for its data."""

import re
from pathlib import Path

import discreet as dp

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
    # About 230 good counts without a bound and 110 with the best bound, each with a standard deviation below 8. So the
    # chance of a failure is that of (230 - 1.25 * 110) / sqrt(8^2 + 10^2) = 7.2 deviations, 3e-13.
    assert good(found["release"], found["log"]) > 1.25 * max(good(release, found["log"]) for release in bounded)
