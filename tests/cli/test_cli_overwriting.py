"""The output of `discreet` never overwrites an input, a ledger or a stream."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import BUDGET, COUNT, discreet, errors_of

import discreet as dp
from discreet import GaussianThreshold, Histogram, Release
from discreet.cli import report
from discreet.errors import InputError
from discreet.release import export

INPUT = "would overwrite an input"
WHOLE = "parallel = false, quote = chr(34), escape = chr(34)"
QUERY = ["count", "--sql", f"FROM read_csv('log.csv', {WHOLE})", *COUNT, *BUDGET]
NO_CERTIFICATE = "which is not a certificate"
posix = pytest.mark.skipif(os.name == "nt", reason="the test needs POSIX links and descriptors")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Return a CSV file of 2,000 users in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.csv"
    path.write_text("user,item\n" + "".join(f"{n},home\n" for n in range(2000)))
    return path


@pytest.fixture
def ledger(tmp_path):
    """Return a function that creates a ledger of one dataset."""

    def make(name):
        dp.Ledger.open(tmp_path / name).dataset("d", rho=1.0, delta=1e-6)
        return tmp_path / name

    return make


def state(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(folder, *arguments, message=INPUT):
    before = state(folder)
    assert message in errors_of(*arguments)
    assert state(folder) == before


def run(*arguments, **options):
    """Run the command in a new process; return its exit code and errors."""
    line = [sys.executable, "-m", "discreet", *arguments]
    done = subprocess.run(line, stderr=subprocess.PIPE, text=True, check=False, **options)
    return done.returncode, done.stderr


@posix
def test_data_is_not_overwritten_by_any_of_its_names(data):
    os.link(data, "hard.csv")
    os.symlink(data, "soft.csv")
    os.symlink("soft.csv", "softer.csv")
    for output in ("log.csv", "hard.csv", "soft.csv", "softer.csv", "./log.csv"):
        for given in ("**/log.*", "soft.csv"):
            refused(data.parent, "count", given, *COUNT, *BUDGET, "-o", output)


@posix
def test_redirected_input_is_not_overwritten(data):
    with data.open("rb") as rows:
        code, err = run("count", "-", *COUNT, *BUDGET, "-o", "log.csv", stdin=rows)
    assert (code, INPUT in err) == (2, True)


@posix
@pytest.mark.parametrize("output", ["nosuch/../{}", "{}/", "{}/.", "{}/../{}", "through.csv", "dir.csv/"])
def test_no_path_that_the_system_does_not_find_overwrites_a_file(data, ledger, output):
    Path("dir.csv").mkdir()
    Path("list.csv").write_text("home\n")
    paid = ["--ledger", ledger("kept.ledger"), "--dataset", "d", "--rho", 0.1]
    assert discreet("count", data, *COUNT, *paid, "--delta", 1e-8, "--once", "x", "-o", "paid.csv")[0] == 0
    assert discreet("stream", "init", "s.stream", *BUDGET, "--l0", "1", "--horizon", 4, "-q")[0] == 0
    commands = [
        ("log.csv", ["count", "log.csv", *COUNT, *paid, "--delta", 1e-8]),
        ("log.csv", ["top-k", "log.csv", *COUNT, *paid, "--k", 1, "--delta", 1e-8]),
        ("list.csv", ["count", "log.csv", *COUNT, "--items", "list.csv", *paid]),
        ("paid.csv", ["select", "log.csv", *COUNT, *paid, "--delta", 1e-8, "--once", "x"]),
        ("paid.csv", ["stream", "step", "s.stream", "log.csv", *COUNT]),
        ("paid.csv", ["budget", "export", "kept.ledger"]),
    ]
    for name, command in commands:
        Path("through.csv").unlink(missing_ok=True)
        Path("through.csv").symlink_to(f"nosuch/../{name}")
        before = state(data.parent)
        code, rows, err = discreet(*command, "-o", output.replace("{}", name))
        assert (code, rows, "cannot write" in err, state(data.parent)) == (1, "", True, before)
    with data.open("rb") as piped:
        code, err = run("count", "-", *COUNT, *BUDGET, "-o", output.replace("{}", "log.csv"), stdin=piped)
    assert (code, "cannot write" in err, state(data.parent)) == (1, True, before)


@posix
@pytest.mark.parametrize("source", ["log.csv", "-"])
def test_rows_are_not_appended_to_the_data(data, source):
    before = data.read_bytes()
    with data.open("rb") as rows, data.open("ab") as out:
        code, err = run("count", source, *COUNT, *BUDGET, stdin=rows, stdout=out)
    assert (code, "Standard output is a file that the command reads" in err) == (2, True)
    assert data.read_bytes() == before


@posix
def test_shown_rows_are_not_appended_to_their_ledger(data, ledger):
    kept = ledger("kept.ledger")
    before = kept.read_bytes()
    for command in (["budget", "show"], ["budget", "history"], ["budget", "export"], ["verify", data, "--ledger"]):
        with kept.open("ab") as out:
            code, err = run(*command, kept, stdout=out)
        assert (code, "a file that the command reads" in err) == (2, True)
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    "name",
    [
        *(
            "'log.csv'",
            "$$log.csv$$",
            "'log' || '.csv'",
            r"E'\x6cog.csv'",
            "'*.c?v'",
            "[concat('lo', chr(103), '.csv')]",
        ),
    ],
)
def test_a_query_overwrites_no_file(data, name):
    sql = f"SELECT * FROM read_csv({name}, {WHOLE})"
    assert discreet("count", "--sql", sql, *COUNT, *BUDGET, "-q")[0] == 0
    refused(data.parent, "count", "--sql", sql, *COUNT, *BUDGET, "-o", "log.csv", message="-o overwrites no file")


@posix
def test_a_query_overwrites_no_link_and_no_certificate(data):
    os.symlink("nowhere.csv", "new.csv")
    os.link(data, "other.csv.certificate.json")
    for output in ("new.csv", "other.csv"):
        for more in ([], ["--certificate"]):
            assert "-o overwrites no file" in errors_of(*QUERY, "-o", output, *more)
    assert os.readlink("new.csv") == "nowhere.csv"


def test_a_query_writes_a_new_file_once(data):
    command = [*QUERY, "-o", "new.csv", "--certificate"]
    assert discreet(*command)[0] == 0
    refused(data.parent, *command, message="-o overwrites no file")


def test_spark_overwrites_no_file(data):
    command = ["count", "{log,x}.csv", "--engine", "spark", *COUNT, *BUDGET]
    refused(data.parent, *command, "-o", "log.csv", message="-o overwrites no file")


@pytest.mark.parametrize("more", [[], ["--certificate"]])
def test_a_certificate_never_overwrites_a_ledger(data, ledger, more):
    kept = ledger("rows.csv.certificate.json")
    paid = ["--ledger", kept, "--dataset", "d"]
    for given in (paid, []):
        message = INPUT if given else NO_CERTIFICATE
        refused(data.parent, "count", data, *COUNT, *BUDGET, *given, "-o", "rows.csv", *more, message=message)
    other = ledger("other.csv")
    refused(data.parent, "count", data, *COUNT, *BUDGET, "--ledger", other, "--dataset", "d", "-o", "other.csv", *more)
    refused(data.parent, "budget", "export", other, "-o", "other.csv")
    assert dp.Ledger.open(kept).dataset("d").spent.rho == 0


def test_a_certificate_never_overwrites_a_stream(data):
    begun = ["stream", "init", "rows.csv.certificate.json", "--rho", "1", "--delta", "1e-6", "--l0", "1"]
    assert discreet(*begun, "--horizon", "9")[0] == 0
    step = ["stream", "step", "rows.csv.certificate.json", data, *COUNT]
    refused(data.parent, *step, "-o", "rows.csv")
    refused(data.parent, "stream", "show", "rows.csv.certificate.json", "-o", "rows.csv")
    refused(data.parent, *step, "-o", "log.csv")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"SQLite format 3\0", b'{"rows": []}', b"\xff", None])
@pytest.mark.parametrize("certificate", [True, False])
def test_a_certificate_overwrites_only_certificates(tmp_path, content, certificate):
    release = GaussianThreshold(sigma=5.0, delta=1e-6, l0=1).release(
        Histogram.from_counts(["x"], [5000], l0=1, linf=1, complete=True)
    )
    place = tmp_path / "rows.csv.certificate.json"
    place.mkdir() if content is None else place.write_bytes(content)
    with pytest.raises(InputError, match="no certificate"):
        release.write(tmp_path / "rows.csv", certificate=certificate)
    assert [path.name for path in tmp_path.iterdir()] == [place.name]
    assert content is None or place.read_bytes() == content


def test_new_rows_overwrite_old_rows_and_certificate(data):
    for more in (["--certificate"], ["--certificate"], []):
        assert discreet("count", data, *COUNT, *BUDGET, "-o", "rows.csv", *more)[0] == 0
    assert {path.name for path in data.parent.iterdir()} == {"log.csv", "rows.csv"}


def appears(monkeypatch, name, content):
    """Patch `Release.write` so that another file with this name appears after the release is drawn."""
    made = Release.write

    def write(self, *given, **options):
        def late(*more, **keywords):
            (place := Path(name)).exists() or place.write_bytes(content)
            return rows(*more, **keywords)

        rows = export.write
        with monkeypatch.context() as patch:
            patch.setattr(export, "write", late)
            made(self, *given, **options)

    monkeypatch.setattr(Release, "write", write)


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("name", ["new.csv", "new.csv.certificate.json"])
@pytest.mark.parametrize("early", [True, False])
def test_a_file_that_appears_during_a_query_is_kept(data, ledger, monkeypatch, links, name, early):
    kept = ledger("kept.ledger")
    content = b'{"made_by": 1, "digest": 2, "columns": 3}'
    if early:
        run = report.write_release
        monkeypatch.setattr(report, "write_release", lambda *g, **o: (Path(name).write_bytes(content), run(*g, **o))[1])
    else:
        appears(monkeypatch, name, content)
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError()))
    paid = ["--ledger", kept, "--dataset", "d", "-o", "new.csv", "--certificate"]
    code, out, err = discreet(*QUERY, *paid)
    assert (code, "a file of this name has appeared" in err) == (1, True)
    assert "home" in out
    assert "These rows were released" in err
    assert Path(name).read_bytes() == content
    assert dp.Ledger.open(kept).dataset("d").spent.rho > 0
    assert not list(data.parent.glob(".discreet-*"))


def test_a_certificate_that_appears_during_a_query_is_kept(data, monkeypatch):
    content = b'{"made_by": 1, "digest": 2, "columns": 3}'
    appears(monkeypatch, "new.csv.certificate.json", content)
    assert discreet(*QUERY, "-o", "new.csv")[0] == 0
    assert Path("new.csv.certificate.json").read_bytes() == content


def test_rows_are_written_without_support_for_hard_links(data, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError()))
    assert discreet(*QUERY, "-o", "new.csv", "--certificate")[0] == 0
    assert discreet("verify", "new.csv")[0] == 0


def test_the_demo_does_not_overwrite_a_file_unasked(tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("mine")
    assert "--overwrite" in errors_of("demo", "--write", mine)
    assert mine.read_text() == "mine"
    assert discreet("demo", "--write", mine, "--overwrite")[0] == 0
    assert mine.read_text().startswith("user,item")


@posix
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("certified", "renames"), [*((True, n) for n in range(4)), *((False, n) for n in range(3))])
def test_a_kill_leaves_rows_that_their_certificate_fits(tmp_path, suffix, certified, renames):
    path = tmp_path / f"rows.{suffix}"
    old, new = (GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=1).release(users(n)) for n in (1, 2))
    old.write(path, certificate=True)
    if (child := os.fork()) == 0:
        rename, left = Path.replace, iter(range(renames))

        def ending(*given):
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            rename(*given)

        Path.replace = ending
        new.write(path, certificate=certified)
        os._exit(0)
    killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert killed == (renames < (3 if certified else 2))
    replaced = renames > 1
    if certified or not replaced:
        assert dp.verify(path).digest == (new if replaced else old).digest
        assert len(Release.read(path)) == (2 if replaced else 1)
    else:  # the old certificate is not said to be that of the new rows
        with pytest.raises(InputError, match="cannot read the certificate"):
            dp.verify(path)
    old.write(path, certificate=True)
    assert dp.verify(path).digest == old.digest
    assert {*tmp_path.glob("rows*")} == {path, export.certificate_path(path)}


def users(items):
    return Histogram.from_counts([f"item {n}" for n in range(items)], [9000] * items, l0=1, linf=1, complete=True)
