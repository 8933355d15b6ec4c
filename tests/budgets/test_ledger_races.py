"""Many processes and threads on one ledger, killed at any moment; and files that are damaged at random."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from discreet import BudgetExceeded, Guarantee, Ledger, LedgerError

PART = 2.0**-13
WORKER = """
import os, sys, threading
from discreet import BudgetExceeded, Guarantee, Ledger
path, told, threads, part = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
dataset = Ledger.open(path, timeout=120).dataset("views")
out = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def work(number):
    count = 0
    while True:
        name = f"{os.getpid()}.{number}.{count}"
        try:
            dataset.charge(Guarantee(part, 0), made_by=name)
        except BudgetExceeded:
            return
        os.write(out, (name + "\\n").encode())
        count += 1

workers = [threading.Thread(target=work, args=[n]) for n in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""


def race(folder, *, processes, threads, seconds, parts):
    """Races, kills and restarts; what was told was charged, and no more than `parts` charges are there."""
    path, told = folder / "ledger", folder / "told"
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=parts * PART, delta=0)
    generator, killed = random.Random(6), 0
    command = [sys.executable, "-c", WORKER, str(path), str(told), str(threads), str(PART)]

    def start():
        return subprocess.Popen(command, stderr=subprocess.PIPE)

    running = [start() for _ in range(processes)]
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and any(p.poll() is None for p in running):
            time.sleep(generator.uniform(0.05, 0.4))
            place = generator.randrange(processes)
            running[place].send_signal(signal.SIGKILL)
            killed += running[place].wait() == -signal.SIGKILL
            running[place] = start()
            assert dataset.spent.rho <= parts * PART
    finally:
        for process in running:
            process.kill()
        errors = b"".join(process.communicate()[1] for process in running)
    assert errors == b""
    ledger.check()
    charged = Counter(row.mechanism for row in ledger.history)
    assert len(charged) == sum(charged.values()) <= parts
    assert dataset.spent.rho == len(charged) * PART
    if told.exists():
        assert {line for line in told.read_text().split("\n") if line} <= set(charged)
    return killed, len(charged)


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX's")
def test_processes_that_race_and_are_killed_never_spend_more_than_the_total(tmp_path):
    killed, charged = race(tmp_path, processes=4, threads=4, seconds=6, parts=100)
    assert killed > 0
    assert charged > 0


@pytest.mark.statistical
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX's")
def test_processes_that_race_and_are_killed_never_spend_more_than_the_total_at_full_size(tmp_path):
    killed, charged = race(tmp_path, processes=16, threads=8, seconds=60, parts=1_000_000)
    print(f"{killed} processes were killed, {charged} charges are there")
    assert killed > 50
    assert charged > 100
    # And with a total that is reached.
    (tmp_path / "small").mkdir()
    killed, charged = race(tmp_path / "small", processes=16, threads=8, seconds=60, parts=100)
    assert charged == 100


def whole_ledger(folder):
    """A closed ledger of a hundred events or so, and what it says."""
    ledger = Ledger.open(folder / "whole")
    generator = random.Random(3)
    for name in ("views", "clicks", "words"):
        dataset = ledger.dataset(name, rho=1.0, delta=1e-6)
        for _ in range(generator.randrange(10, 40)):
            dataset.charge(Guarantee(generator.random() / 100, 0), made_by="x" * generator.randrange(300))
    said = said_by(ledger)
    ledger.close()
    return (folder / "whole").read_bytes(), said


def said_by(ledger):
    return ledger.history, {name: ledger.dataset(name).spent for name in ledger.datasets}


def damaged(content, generator):
    """The content with a few bits flipped, cut, with two stretches swapped, or with one overwritten."""
    data = bytearray(content)
    kind = generator.randrange(6)
    if kind < 3:
        # Half of the flips in what SQLite reads first, where they do the most.
        for _ in range(generator.choice([1, 1, 2, 8])):
            place = generator.randrange(generator.choice([100, 4096, len(data)]))
            data[place] ^= 1 << generator.randrange(8)
    elif kind == 3:
        del data[generator.choice([generator.randrange(len(data)), 4096 * generator.randrange(len(data) // 4096)]) :]
    elif kind == 4:
        size = generator.choice([4096, 512, 64, generator.randrange(1, 400)])
        a, b = (size * generator.randrange(len(data) // size) for _ in range(2))
        data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]
    else:
        size, place = generator.choice([1, 16, 512, 4096]), generator.randrange(len(data))
        stretch = len(data[place : place + size])
        data[place : place + size] = generator.choice([bytes(stretch), generator.randbytes(stretch)])
    return bytes(data)


def check_damage(folder, number, seed):
    content, said = whole_ledger(folder)
    generator, detected, harmless = random.Random(seed), 0, 0
    for trial in range(number):
        place = folder / "trial"
        place.mkdir()
        path = place / "ledger"
        path.write_bytes(damaged(content, generator))
        try:
            ledger = Ledger.open(path, timeout=1, create=False)
            assert said_by(ledger) == said
            dataset = ledger.dataset("views")
            dataset.charge(Guarantee(dataset.remaining.rho, 0))
            with pytest.raises(BudgetExceeded):
                dataset.charge(Guarantee(2.0**-30, 0))
            ledger.check()
            harmless += 1
        except LedgerError:
            detected += 1
        except BaseException as error:
            raise AssertionError(f"trial {trial} of seed {seed}") from error
        shutil.rmtree(place)
    return detected, harmless


def test_damage_is_noticed_or_changes_nothing(tmp_path):
    detected, harmless = check_damage(tmp_path, 300, 1)
    assert detected > 100
    assert detected + harmless == 300


@pytest.mark.statistical
def test_damage_is_noticed_or_changes_nothing_at_full_size(tmp_path):
    detected, harmless = check_damage(tmp_path, 10_000, 2)
    print(f"{detected} files were refused, {harmless} were whole where it matters")
    assert detected > 3_000
    assert detected + harmless == 10_000
