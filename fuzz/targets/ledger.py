"""Fuzz target for the ledger parser, with damaged and forged ledgers.

The result must be a LedgerError, or a book that has lost no charge. Half of the inputs damage one or two places of a
genuine ledger: one whose charges have all returned, or one that continued after an interrupted charge. The others
have lines of arbitrary JSON with correct seals, so that the parser reads their content.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from unittest import mock

import atheris

with atheris.instrument_imports(include=["discreet.budgets"]):
    from discreet.budgets import ledger_file, ledger_format

import discreet as dp

CHARGES = 5
ROOM = 4096
"""The most bytes that one damage inserts or removes."""


def genuine(interrupted=False):
    """Return the content of a ledger with some charges, as on disk after they have returned.

    `interrupted`: whether another charge was interrupted between its event and its mark, before the last one.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        visits = dp.Ledger.open(path).dataset("visits", rho=1.0, delta=1e-5)
        for _ in range(CHARGES):
            dp.count({"user": [1, 2], "item": [1, 1]}, user="user", item="item", rho=0.1, delta=1e-6, budget=visits)
        if interrupted:
            try:
                with mock.patch.object(ledger_file.LedgerFile, "overwrite", side_effect=KeyboardInterrupt):
                    visits.charge(dp.Guarantee(0.1, 0))
            except KeyboardInterrupt:
                pass
            visits.charge(dp.Guarantee(0.2, 0))
        return path.read_bytes()


WHOLE = genuine()
INTERRUPTED = genuine(interrupted=True)
HEAD = ledger_format.head_of(WHOLE[: ledger_format.HEAD_SIZE], "file")
SPENT = {content: ledger_format.parse(content).account("visits").spent for content in (WHOLE, INTERRUPTED)}


def damaged(content, given):
    """Return the ledger with one or two places removed, overwritten or filled with other bytes."""
    for _ in range(given.ConsumeIntInRange(1, 2)):
        start = given.ConsumeIntInRange(0, len(content))
        end = start + given.ConsumeIntInRange(0, min(len(content) - start, ROOM))
        content = content[:start] + given.ConsumeBytes(given.ConsumeIntInRange(0, ROOM)) + content[end:]
    return content


def forged(given):
    """Return a ledger with some genuine lines, followed by lines of any JSON or bytes with correct seals."""
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
    """Return a candidate value for a field of a line."""
    number, text = given.ConsumeInt(20), given.ConsumeUnicode(12)
    return given.PickValueInList(
        [number, -1, 2**200, 1.5, float("nan"), None, True, text, [number], {text: number}, "charged", "opened", "{}"]
    )


def test(content):
    """Parse one ledger."""
    given = atheris.FuzzedDataProvider(content)
    if given.ConsumeBool():
        whole = given.PickValueInList([WHOLE, INTERRUPTED])
        try:
            book = ledger_format.parse(damaged(whole, given))
        except dp.errors.LedgerError:
            return
        spent = book.account("visits").spent
        assert spent.rho >= SPENT[whole].rho, "a damaged ledger has lost rho"
        assert spent.delta >= SPENT[whole].delta, "a damaged ledger has lost delta"
        return
    try:
        book = ledger_format.parse(forged(given))
    except dp.errors.LedgerError:
        return
    for account in book.accounts.values():
        assert account.spent.rho >= 0, "less than nothing was spent"
        assert account.spent.delta >= 0, "less than nothing was spent"
        assert account.remaining.rho >= 0, "less than nothing is left"


atheris.Setup(sys.argv, test)
atheris.Fuzz()
