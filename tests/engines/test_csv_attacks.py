"""Quoted CSV cells that look like other users' rows: a user's cell must change only the contributions of this user."""

import csv
import gzip
import io
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from counting import WHOLE, clipped_sums, counted

from discreet.engines.sql import query
from discreet.engines.timed_events import TimedEvents
from discreet.errors import SchemaError

FORGED = "forged"
HEADER = ["user", "item", "value", "when", "note"]


@cache
def honest():
    """Return 60,000 rows of other users, in about 9 MB."""
    return [[f"u{n}", f"item {n % 7}", n % 5, f"2026-01-{1 + n % 3:02d}", "-" * 120] for n in range(60_000)]


@pytest.fixture(scope="module", autouse=True)
def long_fields():
    """Let Python's csv module read cells of any length, in this test module only."""
    before = csv.field_size_limit(2**30)
    yield
    csv.field_size_limit(before)


def forging(size):
    """Return a cell of at least `size` bytes that looks like rows of users who do not exist."""
    lines, made = [""], 0
    while made < size:
        lines.append(f"ghost{len(lines)},{FORGED},4,2026-01-02,")
        made += len(lines[-1]) + 1
    return "\n".join(lines)


def attack(kind):
    """Return a CSV text with a cell that tries to forge or erase other users' rows near byte 8,000,000.

    Python's csv module writes the text.
    """
    rows = honest()
    cells = {"1.2 MB": forging(1_200_000), "29 kB": forging(29_000), "half": forging(29_000) + '\n5,"abc'}
    cell = cells[kind]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(HEADER)
    place = 0
    # The cell extends beyond the byte from which a parallel DuckDB scan looks for the next row.
    while text.tell() < 8_000_000 - len(cell) // 2:
        writer.writerow(rows[place])
        place += 1
    writer.writerows([["attacker", "theirs", 1, "2026-01-01", cell], *rows[place:]])
    return text.getvalue()


@pytest.fixture(scope="module", params=["1.2 MB", "29 kB", "half"])
def text(request):
    return attack(request.param)


@pytest.fixture(scope="module")
def expected(text):
    """The distinct users of each item, as Python's csv module reads the text."""
    users = {}
    for user, item, *_ in [*csv.reader(io.StringIO(text, newline=""))][1:]:
        if user and item:
            users.setdefault(item, set()).add(user)
    return {item: len(distinct) for item, distinct in users.items()}


@pytest.fixture(scope="module", params=["log.csv", "log.csv.gz"])
def path(request, text, tmp_path_factory):
    path = tmp_path_factory.mktemp("attack") / request.param
    content = text.encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("options", [{}, {"memory": "256MiB"}, {"l0": 3}])
def test_a_quoted_cell_cannot_forge_or_erase_rows(path, expected, options):
    assert counted(path, **options) == expected


def test_a_quoted_cell_cannot_forge_sums(path):
    found = clipped_sums(
        str(path), columns=("user", "item", "value"), items=["item 1", FORGED], bounds=(0, 4), resolution=1.0
    )
    rows = [row for row in honest() if row[1] == "item 1"]
    assert found == [sum(row[2] for row in rows), 0]


def test_a_quoted_cell_cannot_forge_timed_events(path):
    events = TimedEvents(str(path), event="user", item="item", time="when")
    rows_of = events.rows_by_round(datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1))
    for number in (1, 2, 3):
        found = counted(rows_of(number))
        theirs = found.pop("theirs", 0)
        assert theirs == (number == 1)
        assert sum(found.values()) == 20_000


def test_a_query_whose_rows_a_quoted_cell_can_forge_is_refused(path, expected):
    """DuckDB takes no quote at all if the first rows have none, also with parallel = false."""
    read = "SELECT \"user\", item FROM read_csv('{}', all_varchar = true, max_line_size = 4000000{})"
    for said in ("", ", parallel = false", ", quote = '\"', escape = '\"'"):
        with pytest.raises(SchemaError, match="parallel = false, quote"):
            query(read.format(path, said))
    assert counted(query(read.format(path, f", {WHOLE}"))) == expected
