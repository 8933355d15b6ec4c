"""Processes with many threads that charge one ledger and are killed during their charges."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter

import pytest
from children import PART

from discreet import Ledger

WORKER = """
import os, sys, threading
from discreet import BudgetExceeded, Guarantee, Ledger
path, told, threads, part = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
dataset = Ledger.open(path, timeout=600).dataset("views")

def work(number):
    count = 0
    while True:
        name = f"{os.getpid()}.{number}.{count}"
        try:
            dataset.charge(Guarantee(part, 0), made_by=name)
        except BudgetExceeded:
            return
        os.write(told, (name + "\\n").encode())
        count += 1

workers = [threading.Thread(target=work, args=[n]) for n in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the system has no SIGKILL")


class Race:
    """Processes that charge one ledger and report each charge that has returned."""

    def __init__(self, path, *, processes, threads, parts):
        self.path, self.parts, self.told = path, parts, []
        Ledger.open(path).dataset("views", rho=parts * PART, delta=0)
        heard, self.tell = os.pipe()
        self.heard = os.fdopen(heard, "rb")
        self.command = [sys.executable, "-c", WORKER, str(path), str(self.tell), str(threads), str(PART)]
        self.errors = []
        self.running = [self.start() for _ in range(processes)]

    def start(self):
        return subprocess.Popen(self.command, stderr=subprocess.PIPE, pass_fds=[self.tell])

    def wait_for_charges(self, number):
        """Wait until `number` more charges have returned."""
        for _ in range(number):
            self.told.append(self.heard.readline().decode().strip())

    def kill(self, place):
        """Kill one process and start another in its place. Return whether the killed process was still running."""
        process = self.running[place]
        process.send_signal(signal.SIGKILL)
        self.errors.append(process.communicate()[1])
        self.running[place] = self.start()
        return process.returncode == -signal.SIGKILL

    def end(self, *, kill):
        """End all processes, by SIGKILL if `kill`. Return the number of charges in the ledger.

        Before that, compare the ledger with the reported charges.
        """
        os.close(self.tell)
        for process in self.running:
            if kill:
                process.kill()
        for line in self.heard:
            self.told.append(line.decode().strip())
        self.errors += [process.communicate()[1] for process in self.running]
        assert b"".join(self.errors) == b""
        ledger = Ledger.open(self.path)
        charged = Counter(row.mechanism for row in ledger.history)
        assert len(charged) == sum(charged.values()) <= self.parts
        assert ledger.dataset("views").spent.rho == len(charged) * PART
        assert set(self.told) <= set(charged)
        return len(charged)


def check_race(path, *, processes, threads, kills):
    """Kill processes while they charge a ledger. Then let processes use up the total of another ledger."""
    generator, killed = random.Random(6), 0
    race = Race(path, processes=processes, threads=threads, parts=1_000_000)
    for _ in range(kills):
        race.wait_for_charges(generator.randrange(1, 20))
        killed += race.kill(generator.randrange(processes))
    assert race.end(kill=True) >= len(race.told)
    assert killed == kills
    race = Race(path.with_name("small"), processes=processes, threads=threads, parts=100)
    race.wait_for_charges(30)
    race.kill(0)
    assert race.end(kill=False) == 100


def test_racing_processes_that_are_killed_stay_within_the_total(tmp_path):
    check_race(tmp_path / "ledger", processes=4, threads=4, kills=6)


@pytest.mark.statistical
def test_16_racing_processes_that_are_killed_stay_in_the_total(tmp_path):
    check_race(tmp_path / "ledger", processes=16, threads=8, kills=200)
