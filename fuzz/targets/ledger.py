"""Fuzz target for the ledger parser, with damaged and forged ledgers.

The parser returns a book: the datasets of a ledger with their charges. Each line of a ledger ends with its seal, a hash
of the line and of the seal before. A mark in the head names the last complete line.

Half of the inputs are damaged: one or two places of a genuine ledger are changed. In one genuine ledger all charges
have returned; another has an interrupted charge before its last one. The parser must raise LedgerError or return a
book that has spent at least as much as the genuine ledger.

The other inputs are forged: some genuine lines, then lines of arbitrary JSON or bytes. All seals and marks are correct,
so that the parser reads the content. The parser must raise LedgerError or return a book without negative amounts.
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
"""The most bytes that are removed at one place, and the most that are inserted."""


def genuine(interrupted=False):
    """Return the content of a ledger with some charges, as on disk after they have returned.

    `interrupted`: whether two charges follow. The first is interrupted after its line and before its mark is written.
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
    """Return the ledger with other bytes in one or two places."""
    for _ in range(given.ConsumeIntInRange(1, 2)):
        start = given.ConsumeIntInRange(0, len(content))
        end = start + given.ConsumeIntInRange(0, min(len(content) - start, ROOM))
        content = content[:start] + given.ConsumeBytes(given.ConsumeIntInRange(0, ROOM)) + content[end:]
    return content


def forged(given):
    """Return a ledger of some genuine lines and up to four lines of any JSON or bytes, all with correct seals."""
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
    """Return a value of any type for a field of a line."""
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
        assert spent.rho >= SPENT[whole].rho, "a damaged ledger has spent less rho than the genuine one"
        assert spent.delta >= SPENT[whole].delta, "a damaged ledger has spent less delta than the genuine one"
        return
    try:
        book = ledger_format.parse(forged(given))
    except dp.errors.LedgerError:
        return
    for account in book.accounts.values():
        assert account.spent.rho >= 0, "the spent rho is negative"
        assert account.spent.delta >= 0, "the spent delta is negative"
        assert account.remaining.rho >= 0, "the remaining rho is negative"


atheris.Setup(sys.argv, test)
atheris.Fuzz()
