"""Ledgers that are cut, flipped or overwritten: each is refused, or still has every charge.

An event is one line of a ledger. A mark in the head of the file names the last complete event, and the head has two
marks. A seal is the hash at the end of each event (`discreet/budgets/ledger_format.py`).
"""

import os
import random
import re
from copy import copy

import pytest
from small import histogram, top

from discreet import BudgetExceeded, Guarantee, Ledger
from discreet.budgets import latest, ledger_file, ledger_format, record
from discreet.budgets.charge import Charge
from discreet.budgets.ledger_file import LedgerFile
from discreet.errors import LedgerError

HEAD = 1536


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


def forget():
    """Make this process forget all ledgers that it has read."""
    latest._states.clear()


def small_ledger(path, charges=3):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    for _ in range(charges):
        dataset.charge(Guarantee(0.125, 0))
    return dataset, path.read_bytes()


def spent_in(content):
    """Return the spent budget in this content. The parser compares the content with no earlier state."""
    return ledger_format.parse(content).accounts["views"].spent


def newest_mark(content):
    """Return the offsets of the newest mark. A crash may tear this mark, so the parser accepts damage to it alone."""
    slots = {content[place : place + 512]: place for place in (512, 1024)}
    place = slots[max(slots)]
    return range(place, place + 512)


def test_every_flipped_bit_is_refused_or_keeps_all_charges(path):
    _, content = small_ledger(path)
    spent, mark = spent_in(content), newest_mark(content)
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            if place in mark:
                assert spent_in(bytes(flipped)) == spent
            else:
                with pytest.raises(LedgerError):
                    ledger_format.parse(bytes(flipped))


def test_every_cut_is_refused(path):
    _, content = small_ledger(path)
    for end in range(len(content)):
        with pytest.raises(LedgerError):
            ledger_format.parse(content[:end])


def test_flips_and_cuts_of_a_file_read_before_are_refused(path):
    dataset, content = small_ledger(path)
    generator, mark = random.Random(5), newest_mark(content)
    for place in generator.sample([place for place in range(len(content)) if place not in mark], 150):
        flipped = bytearray(content)
        flipped[place] ^= 1 << generator.randrange(8)
        path.write_bytes(flipped)
        with pytest.raises(LedgerError):
            Ledger.open(path)
        path.write_bytes(content[:place])
        with pytest.raises(LedgerError):
            dataset.charge(Guarantee(0.125, 0))
    path.write_bytes(content)
    dataset.charge(Guarantee(0.125, 0))


def test_an_unfinished_append_is_replaced_by_the_next(path):
    _, content = small_ledger(path)
    spent = spent_in(content)
    line = content.splitlines(keepends=True)[-1]
    for tail in (line[:1], line[:-1], bytes(300), bytes(9000), b"\n\n", line, os.urandom(50)):
        path.write_bytes(content + tail)
        forget()
        assert spent_in(content + tail) == spent
        dataset = Ledger.open(path).dataset("views")
        assert path.read_bytes() == content + tail
        dataset.charge(Guarantee(0.125, 0))
        assert dataset.spent == Guarantee(0.5, 0)
        after = path.read_bytes()
        assert after[HEAD:].startswith(content[HEAD:] + b'{"number":6,')
        assert ledger_format.parse(after).end == len(after)
        forget()
        assert Ledger.open(path).dataset("views").spent == Guarantee(0.5, 0)


def test_a_complete_event_without_its_mark_counts(path):
    dataset, before = small_ledger(path)
    dataset.charge(Guarantee(0.125, 0))
    content = path.read_bytes()
    for head in (before[:HEAD], torn(content)):
        path.write_bytes(head + content[HEAD:])
        forget()
        again = Ledger.open(path).dataset("views")
        assert again.spent == Guarantee(0.5, 0)
        again.charge(Guarantee(0.125, 0))
        forget()
        assert Ledger.open(path).dataset("views").spent == Guarantee(0.625, 0)


def torn(content):
    """Return the head of a ledger whose newest mark was torn by a crash."""
    slots = [content[512:1024], content[1024:1536]]
    newest = max(slots)
    slots[slots.index(newest)] = newest[:60] + min(slots)[60:]
    return content[:512] + b"".join(slots)


def test_a_damaged_mark_and_event_together_are_refused(path):
    _, content = small_ledger(path)
    spent = spent_in(content)
    assert spent_in(torn(content) + content[HEAD:]) == spent
    last = content.splitlines(keepends=True)[-1]
    for tail in (b"", last[:-1], last[:9] + b"0" + last[10:], bytes(len(last))):
        with pytest.raises(LedgerError):
            ledger_format.parse(torn(content) + content[HEAD : -len(last)] + tail)


def interrupted_ledger(path, monkeypatch):
    """Return a ledger's content: the last charge but one was interrupted between its event and its mark."""
    dataset, _ = small_ledger(path)
    overwrite = LedgerFile.overwrite
    monkeypatch.setattr(LedgerFile, "overwrite", interrupt)
    with pytest.raises(KeyboardInterrupt):
        dataset.charge(Guarantee(0.125, 0))
    monkeypatch.setattr(LedgerFile, "overwrite", overwrite)
    dataset.charge(Guarantee(0.25, 0))
    return path.read_bytes()


def interrupt(*_):
    raise KeyboardInterrupt


def test_two_damages_after_an_interrupt_are_refused(path, monkeypatch):
    content = interrupted_ledger(path, monkeypatch)
    assert sorted(int(content[place:].split()[1]) for place in (512, 1024)) == [6, 7]  # consecutive events
    assert spent_in(content) == Charge(3 * 2**62, 0)
    flipped = bytearray(content)
    flipped[newest_mark(content)[40]] ^= 1
    assert spent_in(bytes(flipped)) == spent_in(content)
    last = len(content.splitlines(keepends=True)[-1])
    for end in range(HEAD, len(content)):
        with pytest.raises(LedgerError, match="corrupt"):
            ledger_format.parse(bytes(flipped[:end]))
    for place in range(len(flipped) - last, len(flipped)):
        twice = flipped.copy()
        twice[place] ^= 1
        with pytest.raises(LedgerError, match="corrupt"):
            ledger_format.parse(bytes(twice))


def test_an_event_is_synced_before_its_late_mark(path, monkeypatch):
    dataset, _ = small_ledger(path)
    monkeypatch.setattr(LedgerFile, "overwrite", interrupt)
    with pytest.raises(KeyboardInterrupt):
        dataset.charge(Guarantee(0.125, 0))
    monkeypatch.undo()
    steps, sync, write = [], ledger_file._sync, ledger_file._write
    monkeypatch.setattr(ledger_file, "_sync", lambda file: (steps.append("sync"), sync(file)))
    monkeypatch.setattr(
        ledger_file, "_write", lambda raw, place, line: (steps.append(line.split(b" ")[0][:4]), write(raw, place, line))
    )
    dataset.charge(Guarantee(0.25, 0))
    assert [step for step in steps if step] == ["sync", b"mark", "sync", b'{"nu', "sync", b"mark", "sync"]


def test_two_copies_of_one_mark_are_refused(path):
    _, content = small_ledger(path)
    last = len(content.splitlines(keepends=True)[-1])
    for marks in (content[512:1024] * 2, content[1024:1536] * 2):
        for events in (content[HEAD:], content[HEAD:-last]):
            with pytest.raises(LedgerError, match="corrupt"):
                ledger_format.parse(content[:512] + marks + events)


def test_events_of_a_diverged_copy_are_refused(path, tmp_path, monkeypatch):
    # Two copies of one ledger differ in one charge. Only the chain of seals can tell their later events apart.
    monkeypatch.setattr("discreet.budgets.chain.fresh_key", lambda: "0" * 64)
    monkeypatch.setattr(record, "datetime", FixedTime)
    contents = []
    for place, rho in ((path, 0.5), (tmp_path / "other", 0.25)):
        forget()
        dataset = Ledger.open(place).dataset("views", rho=1.0, delta=1e-6)
        dataset.charge(Guarantee(rho, 0), made_by="x")
        dataset.charge(Guarantee(0.125, 0))
        contents.append(place.read_bytes())
    mine, other = (content[HEAD:].splitlines(keepends=True) for content in contents)
    assert len(mine[2]) == len(other[2])
    assert mine[3][:-65] == other[3][:-65]
    assert spent_in(contents[0]).rho == 0.625 * 2**64
    for events in ([*mine[:2], other[2], mine[3]], [*mine[:2], *other[2:]]):
        with pytest.raises(LedgerError):
            ledger_format.parse(contents[0][:HEAD] + b"".join(events))


class FixedTime:
    @staticmethod
    def now(_):
        return FixedTime

    @staticmethod
    def isoformat(timespec):
        return "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize("order", [[0, 1, 2, 4], [0, 1, 3, 2, 4], [0, 1, 2, 3, 3, 4], [1, 2, 3, 4], [0, 1, 2, 3]])
def test_moved_or_missing_events_are_refused(path, order):
    _, content = small_ledger(path)
    events = content[HEAD:].splitlines(keepends=True)
    with pytest.raises(LedgerError, match="corrupt"):
        ledger_format.parse(content[:HEAD] + b"".join(events[number] for number in order))


def test_random_damage_raises_only_ledger_errors(path):
    _, content = small_ledger(path)
    generator, refused = random.Random(7), 0
    for _ in range(3000):
        damaged = bytearray(content)
        for _ in range(generator.choice([1, 2, 8])):
            place, size = generator.randrange(len(damaged) + 1), generator.choice([0, 1, 16, 600])
            damaged[place : place + size] = generator.randbytes(generator.choice([0, size, 16]))
        try:
            ledger_format.parse(bytes(damaged))
        except LedgerError:
            refused += 1
    assert 2000 < refused < 3000  # damage that changes nothing, or only one mark, is accepted


@pytest.mark.parametrize(
    "row",
    [
        *("[]", "1", "null", "{", '{"number":3}', "NaN", "[" * 100_000, '{"number":3},{"number":4}'),
        '{"number":3,"kind":"charged","dataset":"views","rho":-1}',
        '{"number":3,"kind":"charged","dataset":"views","rho":1.5}',
        '{"number":3,"kind":"charged","dataset":"views","rho":true}',
        '{"number":3,"kind":"charged","dataset":"views","rho":1' + "0" * 5000 + "}",
        '{"number":3,"kind":"charged","dataset":"views","rho":1' + "0" * 400 + "}",
        '{"number":true,"kind":"charged","dataset":"views"}',
        '{"number":3,"kind":"charged","dataset":["views"]}',
        '{"number":3,"kind":"charged","dataset":"other"}',
        '{"number":3,"kind":"refunded","dataset":"views"}',
        '{"number":3,"kind":["charged"],"dataset":"views"}',
        '{"number":3,"kind":"created"}',
        '{"number":3,"kind":"released","dataset":"views","of":2}',
        '{"number":3,"kind":"released","dataset":"views"}',
        '{"number":3,"kind":"opened","dataset":"views","parameters":"{}"}',
        '{"number":3,"kind":"opened","dataset":"x","rho":1,"parameters":"{}"}',
        '{"number":3,"kind":"opened","dataset":"x","rho":1,"parameters":"[]"}',
        '{"number":3,"kind":"opened","dataset":1,"rho":1,"parameters":"{\\"unit\\":\\"user\\",\\"neighbours\\":\\"added\\"}"}',
        '{"number":3,"kind":"opened","dataset":"x","rho":1,"parameters":"{\\"unit\\":0,\\"neighbours\\":0}"}',
    ],
)
def test_an_invalid_event_with_a_valid_seal_is_refused(path, row):
    _, content = small_ledger(path, charges=0)
    book = ledger_format.parse(content)
    payload = row.encode() + b" "
    line = payload + ledger_format._seal(book.hash, payload) + b"\n"
    with pytest.raises(LedgerError, match="corrupt"):
        ledger_format.parse(content + line)


def test_a_forged_charge_over_the_total_leaves_no_budget(path):
    _, content = small_ledger(path, charges=0)
    book = ledger_format.parse(content)
    payload = b'{"number":3,"kind":"charged","dataset":"views","rho":%d} ' % 2**65
    path.write_bytes(content + payload + ledger_format._seal(book.hash, payload) + b"\n")
    dataset = Ledger.open(path).dataset("views")
    assert dataset.remaining.rho == 0
    with pytest.raises(BudgetExceeded):
        dataset.charge(Guarantee(2.0**-64, 0))


def large_ledger(path):
    """Return the bytes of a ledger of about a hundred events, and its history and sums."""
    ledger = Ledger.open(path)
    generator = random.Random(3)
    for name in ("views", "clicks", "words"):
        dataset = ledger.dataset(name, rho=1.0, delta=1e-6)
        for _ in range(generator.randrange(10, 40)):
            dataset.charge(Guarantee(generator.random() / 100, 0), made_by="x" * generator.randrange(300))
    return path.read_bytes(), contents_of(ledger)


def contents_of(ledger):
    return ledger.history, {name: ledger.dataset(name).spent for name in ledger.datasets}


def damaged(content, generator):
    """Return the content after one kind of damage: flipped bits, a cut, two parts swapped, or one overwritten."""
    data = bytearray(content)
    kind = generator.randrange(6)
    if kind < 3:
        # Two thirds of the flips are in the first 4,096 bytes, where they do the most damage.
        for _ in range(generator.choice([1, 1, 2, 8])):
            place = generator.randrange(generator.choice([100, 4096, len(data)]))
            data[place] ^= 1 << generator.randrange(8)
    elif kind == 3:
        lines = [match.end() for match in re.finditer(b"\n", content)]
        del data[generator.choice([generator.randrange(len(data)), generator.choice(lines[:-1])]) :]
    elif kind == 4:
        size = generator.choice([4096, 512, 64, generator.randrange(1, 400)])
        a, b = (size * generator.randrange(len(data) // size) for _ in range(2))
        data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
    else:
        size, place = generator.choice([1, 16, 512, 4096]), generator.randrange(len(data))
        stretch = len(data[place : place + size])
        data[place : place + size] = generator.choice([bytes(stretch), generator.randbytes(stretch)])
    return bytes(data)


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=pytest.mark.statistical)])
def test_damage_is_detected_or_harmless(tmp_path, number):
    content, said = large_ledger(tmp_path / "whole")
    generator, detected, path = random.Random(number), 0, tmp_path / "ledger"
    for _ in range(number):
        path.write_bytes(damaged(content, generator))
        forget()
        try:
            ledger = Ledger.open(path, timeout=1, create=False)
            assert contents_of(ledger) == said
            dataset = ledger.dataset("views")
            dataset.charge(Guarantee(dataset.remaining.rho, 0))
            with pytest.raises(BudgetExceeded):
                dataset.charge(Guarantee(2.0**-30, 0))
            ledger.check()
        except LedgerError:
            detected += 1
    assert detected > {300: 250, 10_000: 9_000}[number]


def book_of(content):
    """Return the book of this content, or None if it is refused."""
    try:
        return ledger_format.parse(content)
    except LedgerError:
        return None


def every_kind(path):
    """Return the content of a ledger with events of every kind, and names that JSON escapes."""
    ledger = Ledger.open(path)
    for name in ("views", 'a "b" \\ ä', "clicks"):
        dataset = ledger.dataset(name, rho=1.0, delta=1e-6)
        for made_by in ("other", 'say "ä"\\'):
            dataset.charge(Guarantee(2.0**-40, 2.0**-60), made_by=made_by)
        dataset.release(top(rho=0.01), histogram())
    ledger.dataset("views").charge(Guarantee(0, 0))
    return path.read_bytes()


def test_charges_of_a_forger_are_whole_and_not_negative(path):
    content = every_kind(path)
    head, book = content[:HEAD], ledger_format.parse(content)
    first = ledger_format.head_of(head, path).line
    number = book.number + 1
    start = f'{{"number":{number},"time":"t","kind":"charged","dataset":"views"'
    for rest, rho in FORGED.items():
        payload = (start + rest).encode() + b" "
        line = payload + ledger_format._seal(book.hash, payload) + b"\n"
        grown = copy(book)
        grown.number, grown.hash, grown.end = number, line[-65:-1].decode(), book.end + len(line)
        mark = ledger_format.mark_line(first, grown)
        read = book_of(first + mark + ledger_format.mark_line(first, book) + content[HEAD:] + line)
        more = None if read is None else read.accounts["views"].spent.rho - book.accounts["views"].spent.rho
        assert more == rho, rest


FORGED = {
    ',"rho":5,"delta":0,"rho":7,"nonce":"0"}': 7,
    ',"rho":-5,"delta":0,"nonce":"0"}': None,
    ',"rho":5.0,"delta":0,"nonce":"0"}': None,
    ',"rho":true,"delta":0,"nonce":"0"}': None,
    ',"rho":05,"delta":0,"nonce":"0"}': None,
    ',"rho":' + "9" * 36 + ',"delta":0,"nonce":"0"}': int("9" * 36),
    ',"rho":' + "9" * 50 + ',"delta":0,"nonce":"0"}': None,
    ',"of":3,"rho":5,"delta":0,"nonce":"0"}': 5,
    ',"rho":5,"nonce":"0"}': 5,
    ',"rho":5,"delta":0,"mechanism":"\\x","nonce":"0"}': None,
    ',"rho":5,"delta":0,"mechanism":"\\ud800","nonce":"0"}': 5,
    ',"rho":5,"delta":0,"mechanism":"a\tb","nonce":"0"}': None,
    ',"rho":5,"delta":0,"mechanism":"\xff","nonce":"0"}': 5,
    ',"rho":5,"delta":0,"nonce":"0"},{}': None,
    ',"kind":"released","of":9,"nonce":"0"}': None,
    ',"dataset":"none","rho":5,"delta":0,"nonce":"0"}': None,
    ',"rho":5,"delta":0,"nonce":"0"}': 5,
}
"""The ends of lines with valid seals, and the units of rho that each adds: None if it is refused."""
