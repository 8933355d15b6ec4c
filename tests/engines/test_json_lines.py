"""The reader of JSON lines compared with its reference, and lines that change no other row."""

import gzip
import json
from datetime import UTC, datetime, timedelta

import pytest
from command import BUDGET, errors_of, output
from counting import clipped_sums, counted, csv
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import _core
from discreet.engines.checking import check
from discreet.engines.projection import period_of
from discreet.engines.timed_events import TimedEvents
from discreet.errors import DiscreetError, InputError, ParameterError, SchemaError
from discreet.reference import json_lines

KEYS = ["user", "item"]
LONG = b'{"user":9,"item":"' + b"x" * 64_000_000 + b'"}'
PLAIN = [b'{"user": %d, "item": "%s"}' % (user, item) for user in range(5) for item in (b"a", b"b")]


@pytest.fixture(scope="module")
def read(rows_of):
    """A function that reads the keys of a file in blocks of a given size."""

    def rows(path, block, value=None):
        return rows_of(lambda: _core.json_stream([str(path)], KEYS, block=block, value=value))

    return rows


characters = st.characters() | st.sampled_from('\ud800\udc00\0"\\\n\u2028')
texts = st.text(characters, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
TOKENS = ["null", "true", "-0", "01", "1.", "1e5", "1E-400", "9" * 30, "NaN", "-Infinity", '"\\ud800"', '"\\x"', '"a']
TOKENS += ['"\\ud83d\\ude00"', '"\\u0000"', '"\t"', "[", "{}", '[{"user": 1}]', "\ufeff1", "\u00a01", "'a'", "tru"]
dumped = st.tuples(values, st.booleans()).map(lambda pair: json.dumps(pair[0], ensure_ascii=pair[1]))
written = st.sampled_from(TOKENS) | dumped
keys = st.sampled_from(['"user"', '"item"', '"\\u0075ser"', '"User"', '"x"', '"\\ud800"', '""', "user"])
pairs = st.tuples(keys, st.sampled_from([":", " :\t", ": \r"]), written).map("".join)
objects = st.lists(pairs, max_size=5).map(lambda found: "{" + ",".join(found) + "}")
usual = st.tuples(written, written).map(lambda two: f'{{"user":{two[0]},"item":{two[1]}}}')
odd = st.sampled_from([b"", b" ", b"\r", b"\xff", b"\x00", b"[]", b"1", b"{} {}", b"}", b"{,}", b'{"a":1,}', b"\xc3"])
whole = (objects | usual).map(lambda text: text.encode("utf-8", "surrogatepass"))
line = whole | usual.map(lambda text: text.encode("utf-8", "surrogatepass")) | odd | st.tuples(whole, odd).map(b"".join)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(line, max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf"]),
    st.integers(4, 90),
    st.sampled_from([None, "item"]),
)
def test_the_reader_agrees_with_the_reference(read, log, lines, end, mark, block, value):
    content = mark + end.join(lines)
    log.write_bytes(content)
    assert read(log, block, value) == json_lines.rows(content, KEYS, value)


LABELS = {value: value for value in ("1", "-0", "9" * 40, "true", "false")}
LABELS |= {f'"{text}"': text for text in ("a", "", "1", "x" * 8192)}
LABELS |= {'"a\\u0000b"': "a\0b", '"\\ud83d\\ude00"': "\U0001f600"}
LABELS |= dict.fromkeys(('"' + "x" * 8193 + '"', "1" * 8193, "null", "1.0", "1e2", "[1]", "{}", '"\\ud800"', "NaN"))


@pytest.mark.parametrize(("value", "label"), LABELS.items())
def test_values_become_text_or_leave_out_their_row(tmp_path, value, label):
    content = f'{{"user": 1, "item": {value}}}\n{{"user": {value}, "item": "other"}}\n{{"user": "7", "item": "z"}}\n'
    found = counted(csv(tmp_path, content, "log.jsonl"))
    expected = {"z": 1} if label is None else {label: 1, "other": 1, "z": 1}
    assert found == expected


def test_an_integer_and_its_text_are_one_label(tmp_path):
    path = csv(tmp_path, '{"user": 1, "item": 7}\n{"user": "1", "item": "7"}\n', "log.ndjson")
    assert counted(path) == {"7": 1}


def test_the_last_value_of_a_repeated_key_counts(tmp_path):
    lines = ['{"user": 1, "user": 2, "item": "a"}', '{"item": null, "user": 3, "item": "a"}']
    lines += ['{"user": 4, "item": "a", "item": null}', '{"user": 2, "item": "a"}']
    assert counted(csv(tmp_path, "\n".join(lines), "log.jsonl")) == {"a": 2}


def test_only_keys_of_the_outer_object_are_read(tmp_path):
    content = '{"x": {"user": 1, "item": "deep"}, "user": 2, "item": "a"}\n{"x": {"user": 1, "item": "deep"}}\n'
    assert counted(csv(tmp_path, content, "log.jsonl")) == {"a": 1}


ODD = {
    "broken": b'{"user": 9, "item"',
    "array": b'["user", "item"]',
    "scalar": b"7",
    "two objects": b'{"user": 9} {"item": "a"}',
    "open quote": b'{"user": "9',
    "not UTF-8": b'{"user": 9, "item": "\xff"}',
    "not UTF-8 elsewhere": b'{"user": 9, "item": "a", "x": "\xff"}',
    "NUL": b"\x00",
    "blank": b" \t\r",
    "byte order mark": b'\xef\xbb\xbf{"user": 9, "item": "a"}',
    "missing": b'{"user": 9}',
    "null": b'{"user": null, "item": "a"}',
    "float": b'{"user": 9, "item": 1.5}',
    "deep": b'{"user": 9, "item": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "unclosed depth": b'{"x": ' + b'{"a":[' * 100_000,
    "64 MB": LONG,
    "64 MB of another key": LONG.replace(b'"}', b'", "user": 9, "item": "a"}'),
    "64 MB of spaces": b" " * 64_000_000,
    "many digits": b'{"user": 9, "item": ' + b"1" * 1_000_000 + b"}",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("place", [0, 5, len(PLAIN)])
def test_an_odd_line_changes_no_other_row(tmp_path, capfd, name, place):
    """An error or another count would show that one user has such a line."""
    lines = [*PLAIN[:place], ODD[name], *PLAIN[place:]]
    if name == "byte order mark" and place == 0:
        lines.insert(0, b"")
    plain = csv(tmp_path, b"\n".join(PLAIN), "plain.jsonl")
    odd = csv(tmp_path, b"\n".join(lines) + b"\n", "log.jsonl")
    assert counted(odd) == counted(plain) == {"a": 5, "b": 5}
    assert capfd.readouterr() == ("", "")


def test_other_values_may_be_of_any_depth(tmp_path):
    deep = b"[" * 200_000 + b"]" * 200_000
    path = csv(tmp_path, b'{"user": 1, "x": ' + deep + b', "item": "a"}\n', "log.jsonl")
    assert counted(path) == {"a": 1}


def test_a_line_over_the_limit_is_left_out_and_a_shorter_one_is_read(tmp_path):
    row = b'{"user": 1, "item": "a", "x": "%s"}'
    free = _core.LONGEST_LINE - len(row % b"")
    for more, expected in ((0, {"a": 1}), (1, {})):
        path = csv(tmp_path, row % (b"x" * (free + more)) + b"\n", "log.jsonl")
        assert counted(path) == expected


def test_a_key_that_no_line_has_gives_no_rows(tmp_path):
    """One user's line could decide whether a key exists, so its absence is no error."""
    path = csv(tmp_path, b"\n".join(PLAIN), "log.jsonl")
    assert counted(path, item="page") == {}
    assert dp.count(path, user="user", item="page", rho=1, delta=1e-6).items == []
    found = check(path, "user", "page")
    assert found.dropped == {"the object has no key page": 10}
    assert found.lines_of == {"the object has no key page": [f"line {line}" for line in range(1, 6)]}


def test_names_that_differ_by_case_are_refused(tmp_path):
    path = csv(tmp_path, b"\n".join(PLAIN), "log.jsonl")
    with pytest.raises(SchemaError, match="differ by case"):
        counted(path, item="User")


def test_several_files_folders_and_compressed_files_are_one_table(tmp_path):
    csv(tmp_path, b'{"user": 1, "item": "a"}', "1.jsonl")
    csv(tmp_path, b'\xef\xbb\xbf{"item": "a", "user": 2}\r\n', "2.ndjson")
    csv(
        tmp_path,
        gzip.compress(b'{"user": 3, "item": "a"}\n') + gzip.compress(b'{"user": 4, "item": "b"}'),
        "3.JSONL.gz",
    )
    assert counted(tmp_path) == {"a": 3, "b": 1}
    assert counted(str(tmp_path / "*json*")) == {"a": 2}
    csv(tmp_path, "user,item\n5,a\n")
    with pytest.raises(InputError, match="different formats"):
        counted(tmp_path)


def test_several_columns_and_times_are_read(tmp_path):
    lines = [{"user": user, "page": "a", "n": 7, "at": f"2026-01-0{user}T12:00:00Z"} for user in range(1, 6)]
    lines += [{"user": 8, "page": "a", "n": 7}, {"user": 9, "page": "a", "n": 7, "at": "never"}]
    path = csv(tmp_path, "\n".join(map(json.dumps, lines)), "log.jsonl")
    period = {"time": "at", "since": "2026-01-02", "until": "2026-01-05"}
    assert counted(path, item=["page", "n"], **period) == {("a", "7"): 3}
    found = check(path, "user", ["page", "n"], period=period_of(every=None, **period))
    assert (found.rows, found.counted, found.excluded) == (7, 3, 2)
    assert found.dropped == {"the object has no key at": 1, "at is NULL or is no time": 1}


def test_values_of_a_sum_may_be_any_numbers(tmp_path):
    values = ["1.5", "2", '"3.5"', "1e1", "null", '"x"', "[1]", "NaN"]
    lines = "".join(f'{{"user": {user}, "item": "a", "price": {value}}}\n' for user, value in enumerate(values))
    path = csv(tmp_path, lines, "log.jsonl")
    assert clipped_sums(path, columns=("user", "item", "price"), items=["a"], bounds=(0, 200), resolution=0.5) == [34]


@pytest.mark.parametrize("verb", [dp.count, dp.select])
def test_verbs_read_json_lines_as_they_read_csv(tmp_path, verb):
    log = csv(tmp_path, "".join(f'{{"user": {user}, "item": "home"}}\n' for user in range(6000)), "log.jsonl")
    options = {"l0": 1} if verb is dp.select else {}
    assert list(verb(log, user="user", item="item", rho=1, delta=1e-6, **options).items) == ["home"]
    assert dp.top_k(log, user="user", item="item", k=1, rho=1, delta=1e-6).items == ["home"]


def test_a_check_shows_reasons_and_lines_of_all_files(tmp_path):
    bad = [b"[]", b'{"user": 1}', b'{"user": 1.5, "item": null}', b"\xff", b'{"user": {}, "item": "\\udfff"}']
    first = csv(tmp_path, b"\n".join([*PLAIN, b"", *bad]), "1.jsonl")
    second = csv(tmp_path, b"\n".join([b"{", LONG, *PLAIN[:1]]), "2.jsonl")
    out = output("check", tmp_path / "*.jsonl", "--user", "user", "--item", "item")[0]
    lines = [line.removeprefix("NOT PRIVATE  ") for line in out.splitlines()]
    assert lines[:3] == ["18 rows", "column user: VARCHAR", "column item: VARCHAR"]
    left = [line.partition("left out: ")[2] for line in lines if "left out" in line]
    assert left == [
        f"the line has more than 8,388,608 bytes ({second} line 2)",
        f"the line is not UTF-8 ({first} line 15)",
        f"the line is not a JSON object ({first} line 12, {second} line 1)",
        f"user is a number with a point or exponent, an array or an object ({first} line 14, {first} line 16)",
        f"the object has no key item ({first} line 13)",
        f"item is null ({first} line 14)",
        f"item has half of a surrogate pair ({first} line 16)",
    ]
    assert "11 rows counted" in lines


def test_a_check_of_json_lines_needs_columns(tmp_path):
    with pytest.raises(ParameterError, match="give user and item"):
        check(csv(tmp_path, b"{}", "log.jsonl"))


def test_events_of_a_stream_are_those_of_the_same_csv_file(tmp_path):
    moments = ["2026-01-01", "2026-01-01T23:59:59", "2026-01-02T00:30:00+01:00", "2026-01-03", "never"]
    rows = [{"event": number % 4, "item": "ab"[number % 2], "at": at} for number, at in enumerate(moments * 3)]
    lines = csv(tmp_path, "\n".join([*map(json.dumps, rows), "[]", '{"event": 9}']), "log.jsonl")
    table = csv(tmp_path, "event,item,at\n" + "".join(f"{row['event']},{row['item']},{row['at']}\n" for row in rows))
    found = []
    for path in (lines, table):
        events = TimedEvents(str(path), event="event", item="item", time="at")
        rounds = events.rows_by_round(datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1))
        found.append([sorted(rounds(number).fetchall()) for number in range(1, 5)])
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 3


def test_a_stream_of_integers_refuses_json_lines(tmp_path):
    path = csv(tmp_path, b"\n".join(PLAIN), "log.jsonl")
    output("stream", "init", tmp_path / "s", "--items", "integer", "--l0", "1", *BUDGET)
    err = errors_of("stream", "step", tmp_path / "s", path, "--user", "user", "--item", "item", code=1)
    assert "items of a JSON lines file are text" in err


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
def test_spark_refuses_other_formats_before_a_session_starts(tmp_path, suffix):
    path = csv(tmp_path, b"\n".join(PLAIN), f"log.{suffix}")
    err = errors_of("count", path, "--user", "user", "--item", "item", *BUDGET, "--engine", "spark", code=1)
    assert "with Spark: this needs Parquet files" in err


def test_options_of_csv_are_refused_for_json_lines(tmp_path):
    path = csv(tmp_path, b"\n".join(PLAIN), "log.jsonl")
    err = errors_of("count", path, "--delimiter", ";", "--user", "user", "--item", "item", *BUDGET, code=1)
    assert "its suffix is that of JSON lines" in err
    with pytest.raises(DiscreetError, match="suffix"):
        dp.count(dp.tables.CsvFiles(path=path), user="user", item="item", rho=1, delta=1e-6)
