"""Parses damaged and forged ledgers: the result is a LedgerError, or a book that has lost no charge.

Half of the inputs damage one place of a genuine ledger whose charges have all returned. The others have lines of any
JSON whose seals are right, so that the parser looks at what they say.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["discreet.budgets"]):
    from discreet.budgets import ledger_format

import discreet as dp

CHARGES = 5
ROOM = 4096
"""The most bytes that damage adds."""


def genuine():
    """Return the content of a ledger with some charges, as it lies on the disk when they have returned."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        visits = dp.Ledger.open(path).dataset("visits", rho=1.0, delta=1e-5)
        for _ in range(CHARGES):
            dp.count({"user": [1, 2], "item": [1, 1]}, user="user", item="item", rho=0.1, delta=1e-6, budget=visits)
        return path.read_bytes()


WHOLE = genuine()
HEAD = ledger_format.head_of(WHOLE[: ledger_format.HEAD_SIZE], "file")
SPENT = ledger_format.parse(WHOLE).account("visits").spent


def damaged(given):
    """Return the genuine ledger with one place cut out, overwritten or filled with other bytes."""
    start = given.ConsumeIntInRange(0, len(WHOLE))
    end = start + given.ConsumeIntInRange(0, min(len(WHOLE) - start, ROOM))
    return WHOLE[:start] + given.ConsumeBytes(ROOM) + WHOLE[end:]


def forged(given):
    """Return a ledger whose lines after some genuine ones are of any JSON or bytes, with seals that are right."""
    lines = WHOLE[ledger_format.HEAD_SIZE :].split(b"\n")[:-1]
    lines = lines[: given.ConsumeIntInRange(0, len(lines))]
    seal = lines[-1][-64:] if lines else HEAD.empty().hash.encode()
    rows = [json.loads(line[:-64]) for line in WHOLE[ledger_format.HEAD_SIZE :].split(b"\n")[:-1]]
    for _ in range(given.ConsumeIntInRange(0, 4)):
        row = dict(rows[given.ConsumeIntInRange(0, len(rows) - 1)], number=len(lines) + 1)
        for _ in range(given.ConsumeIntInRange(0, 3)):
            name = given.PickValueInList([*row, "rho", "delta", "of", "kind"])
            row[name] = value(given)
        payload = json.dumps(row).encode() if given.ConsumeBool() else given.ConsumeBytes(64).replace(b"\n", b" ")
        seal = hashlib.sha256(seal + payload).hexdigest().encode()
        lines.append(payload + seal)
    content = b"".join(line + b"\n" for line in lines)
    book = HEAD.empty()
    book.number, book.end, book.hash = len(lines), ledger_format.HEAD_SIZE + len(content), seal.decode()
    mark = ledger_format.mark_line(HEAD.line, book)
    return HEAD.line + mark + mark + content


def value(given):
    """Return what a field of a line might say."""
    number, text = given.ConsumeInt(20), given.ConsumeUnicode(12)
    return given.PickValueInList(
        [number, -1, 2**200, 1.5, float("nan"), None, True, text, [number], {text: number}, "charged", "opened", "{}"]
    )


def test(content):
    """Parse one ledger."""
    given = atheris.FuzzedDataProvider(content)
    if given.ConsumeBool():
        try:
            book = ledger_format.parse(damaged(given))
        except dp.LedgerError:
            return
        spent = book.account("visits").spent
        assert spent.rho >= SPENT.rho, "a damaged ledger has lost rho"
        assert spent.delta >= SPENT.delta, "a damaged ledger has lost delta"
        return
    try:
        book = ledger_format.parse(forged(given))
    except dp.LedgerError:
        return
    for account in book.accounts.values():
        assert account.spent.rho >= 0, "less than nothing was spent"
        assert account.spent.delta >= 0, "less than nothing was spent"
        assert account.remaining.rho >= 0, "less than nothing is left"


atheris.Setup(sys.argv, test)
atheris.Fuzz()
