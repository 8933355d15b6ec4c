"""One ledger under many names: links, mounts, and files that are moved."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from children import charges, ended, forks, in_child, killed, lines, make, spend, spent, start

from discreet import Guarantee, Ledger

PARTS = 40
BY_ANOTHER_NAME = """
import os, sys
sys.path.insert(0, sys.argv[1])
from children import spend
spend(lambda name: print(name, flush=True), sys.argv[2])
"""


@forks
@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_two_processes_never_exceed_a_linked_ledger(tmp_path, link):
    path, other = tmp_path / "ledger", tmp_path / "elsewhere" / "other"
    other.parent.mkdir()
    make(path, PARTS)
    link(path, other)
    workers = [start(spend, name) for name in (path, other)]
    told = [name for _, heard in workers for name in lines(heard)]
    assert [ended(child) for child, _ in workers] == [0, 0]
    assert len(told) == PARTS
    assert sorted(charges(path)) == sorted(charges(other)) == sorted(told)


def mounted(source, target, path):
    """Return a command that charges the ledger at `path`, in a namespace where `source` is mounted at `target`."""
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    here = str(Path(__file__).parent)
    work = [sys.executable, "-c", BY_ANOTHER_NAME, here, str(path)]
    return ["unshare", "-rm", "sh", "-c", script, "sh", str(source), str(target), *work]


def may_mount():
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except OSError:
        return False


@forks
@pytest.mark.skipif(not may_mount(), reason="this process may not mount")
@pytest.mark.parametrize("whole_folder", [False, True])
def test_two_processes_never_exceed_a_mounted_ledger(tmp_path, whole_folder):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    path, other = tmp_path / "here" / "ledger", tmp_path / "there" / "ledger"
    make(path, PARTS)
    if whole_folder:
        command = mounted(path.parent, other.parent, other)
    else:
        other = other.with_name("other")
        other.touch()
        command = mounted(path, other, other)
    mounting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    first = mounting.stdout.readline().strip()  # waits until the other process has charged
    told = spent(path)
    there = [first, *mounting.communicate()[0].split()]
    assert mounting.returncode == 0
    assert len(told) + len(there) == PARTS
    assert sorted(charges(path)) == sorted(told + there)


@forks
def test_both_names_have_all_charges_of_killed_writers(tmp_path):
    path, other = tmp_path / "ledger", tmp_path / "other"
    make(path, 10_000)
    os.link(path, other)
    told = []
    for _ in range(5):
        for name in (path, other):
            told += killed(name, 3)[0]
    assert set(told) <= set(charges(path))
    assert charges(path) == charges(other)


@forks
def test_a_ledger_is_moved_by_moving_its_one_file(tmp_path):
    path = tmp_path / "ledger"
    make(path, 10_000)
    told, _ = killed(path, 5)
    (tmp_path / "new").mkdir()
    moved = tmp_path / "new" / "ledger"
    path.replace(moved)
    assert set(told) <= set(charges(moved))
    assert not path.exists()
    copied = tmp_path / "copied"
    shutil.copyfile(moved, copied)
    assert charges(copied) == charges(moved)


@forks
def test_a_ledger_in_a_read_only_folder_is_charged(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder / "ledger", 10)
    folder.chmod(0o500)

    def work():
        if os.getuid() == 0:
            os.setuid(65534)
        Ledger.open(folder / "ledger").dataset("views").charge(Guarantee(2.0**-13, 0))
        return True

    if os.getuid() == 0:
        os.chown(folder, 65534, -1)
        os.chown(folder / "ledger", 65534, -1)
        # The folders that pytest makes. Each worker of pytest-xdist adds a folder.
        below = [parent for parent in tmp_path.parents if parent.name.startswith(("pytest-", "popen-"))]
        for parent in (tmp_path, *below):
            parent.chmod(0o711)
    try:
        assert in_child(work)
    finally:
        folder.chmod(0o700)
