"""Running counts of real sales and posts, day by day, if the datasets are available."""

from collections import Counter

import numpy as np
import pytest
from real import dataset

import discreet as dp
from discreet.engines.local import connect


def days(name, event, item, least):
    """Return the events of each day as lists of items; days without events are left out."""
    path = dataset(name)
    rows = connect().execute(
        f"SELECT date_diff('day', TIMESTAMP '{least}', CAST(ts AS TIMESTAMP)) + 1 AS day, list({item}) FROM '{path}' "
        f"WHERE {item} IS NOT NULL GROUP BY day, {event} ORDER BY day"
    )
    found = {}
    for day, items in rows.fetchall():
        found.setdefault(day, []).append(items)
    return found


@pytest.mark.parametrize(
    ("name", "event", "item", "least", "l0"),
    [
        ("online_retail_events", "invoice", "item", "2010-12-01", 25),
        ("reddit_top_posts", "user", "subreddit", "2005-01-01", 1),
    ],
)
def test_errors_of_running_counts_match_the_theory(name, event, item, least, l0):
    rounds = days(name, event, item, least)
    last = max(rounds)
    mechanism = dp.Stream.recommended(rho=1.0, delta=1e-6, l0=l0, horizon=last)
    stream, truth, errors, missed = mechanism.start(), Counter(), [], 0
    # Every tenth day is released; the others only count.
    for place, (day, events) in enumerate(sorted(rounds.items())):
        short = [sorted(set(items))[:l0] for items in events]
        truth.update(item for items in short for item in items)
        release = stream.step(short, round=day, release=place % 10 == 0 or day == last)
        deviation, threshold = mechanism.deviation(day), mechanism.threshold(day)
        errors += [(count - truth[label]) / deviation for label, count in release]
        if len(release):
            sure = {label for label, count in truth.items() if count > threshold + 9 * deviation}
            missed += len(sure - set(release.items))
    assert len(errors) > 1000
    assert missed == 0
    # Counts released just above the threshold are more often too large, so the mean error is above zero.
    assert 0.85 < np.std(errors) < 1.15
    assert np.mean(np.abs(errors) > 5) < 1e-3
