"""Inputs of commands that are no regular files, or are not on this machine, and outputs among inputs."""

import os
import shutil
import subprocess
import sys
from urllib.parse import quote

import pytest
from command import discreet, errors_of
from counting import csv

from discreet.engines.sql import query
from discreet.errors import InputError

COUNT = ["--user", "user", "--item", "page", "--rho", "1", "--delta", "1e-6"]


@pytest.fixture
def pipe(tmp_path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe.csv")
    return str(tmp_path / "pipe.csv")


@pytest.mark.parametrize(
    "options", [["--database", "{}", "--table", "t"], ["{}"], ["{log}", "--items", "{}"], ["--database", "/dev/zero"]]
)
def test_a_named_pipe_or_device_is_refused_before_it_is_opened(tmp_path, pipe, options):
    log = csv(tmp_path, "user,page\n1,a\n")
    given = [option.format(pipe, log=log) for option in options]
    given += ["--table", "t"] if given[-1] == "/dev/zero" else []
    err = errors_of("count", *given, *COUNT, code=1)
    assert "it is not a regular file" in err


def test_a_named_pipe_is_refused_as_a_ledger(tmp_path, pipe):
    log = csv(tmp_path, "user,page\n1,a\n")
    err = errors_of("count", log, *COUNT, "--ledger", pipe, "--dataset", "logs", code=1)
    assert "is not a file" in err


@pytest.mark.parametrize("place", ["data/out.csv", "data/below/out.csv", "link/out.csv"])
def test_an_output_in_a_folder_of_data_is_refused(tmp_path, place):
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    csv(folder, "user,page\n1,a\n")
    (tmp_path / "link").symlink_to(folder / "below")
    assert "in a folder that the command reads as data" in errors_of("count", folder, *COUNT, "-o", tmp_path / place)
    assert not (tmp_path / place).exists()
    assert discreet("count", folder, *COUNT, "-o", tmp_path / "out.csv")[0] == 0


@pytest.mark.parametrize("pattern", ["*.csv", "**/*.csv", "../*/*.csv", "[a-z]*.csv"])
def test_an_output_that_the_pattern_of_the_input_matches_is_refused(tmp_path, pattern):
    folder = tmp_path / "data"
    folder.mkdir()
    csv(folder, "user,page\n1,a\n")
    (tmp_path / "link").symlink_to(folder)
    for output in (folder / "out.csv", tmp_path / "link" / "out.csv"):
        assert "-o matches the pattern of the input" in errors_of("count", folder / pattern, *COUNT, "-o", output)
        assert not output.exists()
    for output in (tmp_path / "out.csv", folder / "out.json"):
        assert discreet("count", folder / pattern, *COUNT, "-o", output)[0] == 0


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}"])
def test_the_address_of_a_local_file_is_refused_with_its_path(tmp_path, form):
    log = csv(tmp_path, "user,page\n1,a\n", "a log é.csv")
    err = errors_of("count", form.format(quote(str(log))), *COUNT, code=1)
    path = err.partition("give the path alone, ")[2]
    assert discreet("count", path, *COUNT)[0] == 0


@pytest.mark.skipif(shutil.which("bash") is None or not os.path.exists("/dev/stdin"), reason="needs bash")
@pytest.mark.parametrize("given", ["/dev/stdin < {}", "/dev/fd/0 < {}", "<(cat {})"])
def test_the_remedy_for_a_pipe_in_place_of_a_file_works(tmp_path, given):
    log = csv(tmp_path, "user,page\n1,a\n")
    command = f"{sys.executable} -m discreet count {{}} {' '.join(COUNT)}"

    def run(text):
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True)

    refused = run(command.format(given.format(log)))
    assert refused.returncode == 1
    remedy = " ".join(refused.stderr.split()).partition("give - for FILE: ")[2].partition(" ... ")[0]
    assert remedy == "COMMAND | discreet count -"
    text = remedy.replace("COMMAND", f"cat {log}").replace("discreet count -", command.format("-"))
    assert run(text).returncode == 0


@pytest.mark.parametrize("address", ["s3://bucket/log.parquet", "https://example.invalid/log.parquet"])
def test_a_remote_address_is_refused_with_its_remedy(address):
    err = errors_of("count", address, *COUNT, code=1)
    assert "Download it first" in err
    assert "httpfs" in err
    with pytest.raises(InputError, match="download the file first"):
        query(f"SELECT * FROM read_parquet('{address}')")
