#!/usr/bin/env python3
"""The developer commands of discreet, from a fresh clone on: `python3 dev.py demo`, `python3 dev.py test`.

Needs Python 3.11 or newer, a Rust toolchain and a C compiler. Everything is installed into `.venv` next to
this file, even if another environment is active. The extension is built in release mode, and rebuilt only
if its sources have changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FUZZ = ROOT / "fuzz"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
SILENCE = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    texts = {
        "demo": "build, then run `discreet demo` (further arguments are passed on)",
        "test": "build, then run the tests of Rust and Python (further arguments go to pytest)",
        "lint": "check formatting, lints, types and stubs",
        "docs": "run the examples of docs/ and build the HTML (further arguments go to sphinx-build)",
        "bench": "run the benchmarks, compared with other libraries (further arguments go to pytest)",
        "fuzz": "feed random input to one parser or to all (see `dev.py fuzz --help`)",
        "build": "build and install into .venv",
        "tool": "install cargo-deny or cargo-fuzz, in the version of .github/tools/Cargo.toml",
    }
    for name, text in texts.items():
        commands.add_parser(name, help=text, add_help=False)
    options, rest = parser.parse_known_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - users may have an older Python
        return fail("discreet needs Python 3.11 or newer")
    return COMMANDS[options.command](rest)


def demo(rest: list[str]) -> int:
    build()
    return subprocess.call([PYTHON, "-m", "discreet", "demo", *rest])


def test(rest: list[str]) -> int:
    build("test", "frames", "ibis", "notebooks", *(["spark"] if "spark" in rest else []))
    test_rust("statistical" in rest)
    # Full-size tests need all memory for one process. Spark starts a Java process with many threads.
    alone = "statistical" in rest or "spark" in rest
    workers = [] if alone else ["-n", "2", "--dist", "loadfile"]
    return subprocess.call([PYTHON, "-m", "pytest", *workers, *rest], cwd=ROOT)


def test_rust(full: bool) -> None:
    """Run the tests of Rust on the crates of the release build: the same profile, features and settings of PyO3."""
    command = [cargo(), "test", "--release", "--lib", "--locked", "--quiet"]
    command += ["--features", "python,pyo3/extension-module"]
    # The crate itself is optimised less, which halves its build time, and checks its debug assertions.
    quick = {} if full else {"opt-level": 1, "codegen-units": 16, "debug-assertions": "true"}
    for key, value in quick.items():
        command += ["--config", f"profile.release.package.discreet.{key}={value}"]
    settings = [str(path) for path in (ROOT / "target" / "maturin").glob("pyo3-config-*.txt")]
    environment = {**os.environ, **({"PYO3_CONFIG_FILE": settings[0]} if len(settings) == 1 else {})}
    run("cargo test", [*command, *(["--", "--include-ignored"] if full else [])], cwd=ROOT, env=environment)


def lint(rest: list[str]) -> int:
    build("test", "frames", "lint")
    github = ROOT / ".github"
    schemas = {
        "github-workflows": github.glob("workflows/*.yml"),
        "github-actions": github.glob("actions/*/action.yml"),
        "dependabot": [github / "dependabot.yml"],
    }
    checks = [
        [PYTHON, "-m", "ruff", "check", "."],
        [PYTHON, "-m", "ruff", "format", "--check", "."],
        [PYTHON, "-m", "mypy"],
        [PYTHON, "-m", "mypy.stubtest", "discreet._core"],
        *(
            [PYTHON, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *sorted(files)]
            for schema, files in schemas.items()
        ),
        [cargo(), "fmt", "--check"],
        [cargo(), "fmt", "--check", "--manifest-path", FUZZ / "Cargo.toml"],
        [cargo(), "clippy", "--locked", "--quiet", "--all-targets", "--", "-D", "warnings"],
        [cargo(), "clippy", "--locked", "--quiet", "--features", "python", "--", "-D", "warnings"],
    ]
    failed = 0
    if shutil.which("cargo-deny"):
        checks.append([cargo(), "deny", "--locked", "check", "bans", "licenses", "sources"])
    else:
        fail("cargo-deny is not installed, so crates are not checked; run: python3 dev.py tool cargo-deny")
        failed += "CI" in os.environ
    for check in checks:
        print("$", " ".join(Path(check[0]).name if i == 0 else str(a) for i, a in enumerate(check)), flush=True)
        failed += subprocess.call(check, cwd=ROOT) != 0
    return 1 if failed else 0


def docs(rest: list[str]) -> int:
    build("docs", "frames", "ibis", "notebooks")
    made = ROOT / "docs" / "_build" / "html"
    return subprocess.call(
        [PYTHON, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", *rest, ROOT / "docs", made]
    )


def fuzz(rest: list[str]) -> int:
    """Run fuzz targets. Failing inputs are saved in fuzz/artifacts."""
    targets = {path.stem: path for path in sorted((FUZZ / "targets").iterdir()) if path.suffix in (".rs", ".py")}
    parser = argparse.ArgumentParser(prog="dev.py fuzz", description=fuzz.__doc__)
    parser.add_argument("target", nargs="?", choices=targets, help="one target (default: all)")
    parser.add_argument("--seconds", type=int, default=60, help="time for each target (default: 60)")
    options = parser.parse_args(rest)
    failed = 0
    for name in [options.target] if options.target else targets:
        found = FUZZ / "artifacts" / name
        found.mkdir(parents=True, exist_ok=True)
        limits = [f"-max_total_time={options.seconds}", "-timeout=60", "-rss_limit_mb=4096"]
        limits += ["-max_len=4096", "-len_control=0", f"-artifact_prefix={found}{os.sep}"]
        start = fuzz_rust if targets[name].suffix == ".rs" else fuzz_python
        failed += start(targets[name], limits) != 0
    return 1 if failed else 0


def fuzz_rust(target: Path, limits: list[str]) -> int:
    if not shutil.which("cargo-fuzz"):
        return fail("cargo-fuzz is not installed; run: python3 dev.py tool cargo-fuzz")
    build()
    run("fetching crates", [cargo(), "fetch", "--locked", "--manifest-path", FUZZ / "Cargo.toml"], cwd=ROOT)
    environment = {
        **os.environ,
        # The stable compiler includes the sanitizer, but accepts its flags only with this variable.
        "RUSTC_BOOTSTRAP": "1",
        # The targets link Python, which needs numpy from .venv and frees no memory at exit.
        "PYO3_PYTHON": str(PYTHON),
        "PYTHONPATH": sysconfig.get_path("purelib", vars={"base": str(VENV)}),
        "LD_LIBRARY_PATH": str(sysconfig.get_config_var("LIBDIR")),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    command = [cargo(), "fuzz", "run", "--fuzz-dir", FUZZ, target.stem, "--", *limits, "-detect_leaks=0"]
    return subprocess.call(command, cwd=ROOT, env=environment)


def fuzz_python(target: Path, limits: list[str]) -> int:
    if sys.platform != "linux":
        return fail(f"the target {target.stem} needs atheris, which exists only for Linux")
    build("fuzz")
    corpus = FUZZ / "corpus" / target.stem
    corpus.mkdir(parents=True, exist_ok=True)
    return subprocess.call([PYTHON, target, corpus, *limits], cwd=ROOT)


def bench(rest: list[str]) -> int:
    build("test", "frames", "peers")
    return subprocess.call([PYTHON, "-m", "pytest", "benches", "--benchmark-only", *rest], cwd=ROOT)


def tool(rest: list[str]) -> int:
    """Install a command of .github/tools/Cargo.toml with cargo."""
    versions = tomllib.loads((ROOT / ".github" / "tools" / "Cargo.toml").read_text("utf-8"))["dependencies"]
    parser = argparse.ArgumentParser(prog="dev.py tool", description=tool.__doc__)
    parser.add_argument("name", choices=versions)
    name = parser.parse_args(rest).name
    return subprocess.call([cargo(), "install", "--locked", f"{name}@{versions[name].removeprefix('=')}"])


def build(*groups: str) -> None:
    """Create .venv, install the dependency groups and build the extension, each only if needed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    if stamp("python") != identity() or not PYTHON.exists():
        make_venv()
    wanted = ["maturin>=1.8,<2", *project["project"]["dependencies"]]
    for group in groups:
        wanted += project["dependency-groups"][group]
    known = stamp("packages").splitlines()
    # Compiling all of each package takes long. The tests would not read the bytecode: theirs is in another folder.
    if missing := [requirement for requirement in wanted if requirement not in known]:
        run("installing packages", [PYTHON, "-m", "pip", "install", "--quiet", "--no-compile", *missing])
        set_stamp("packages", "\n".join(known + missing))
    if stamp("sources") != sources() or not [*(ROOT / "python" / "discreet").glob("_core.*[do]")]:
        cargo()
        # Without this setting, maturin would install into the active environment.
        environment = {k: v for k, v in os.environ.items() if k not in ("CONDA_PREFIX", "PYTHONHOME")}
        environment["VIRTUAL_ENV"] = str(VENV)
        command = [PYTHON, "-m", "maturin", "develop", "--locked", "--release", "--quiet"]
        digest = sources()
        run("building in release mode", command, cwd=ROOT, env=environment)
        set_stamp("sources", digest)


def make_venv() -> None:
    if Path(sys.prefix) == VENV:
        raise SystemExit(fail("run dev.py with the Python that .venv was made with: .venv must be made again"))
    shutil.rmtree(VENV, ignore_errors=True)
    process = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True, check=False)
    if process.returncode != 0:
        print(process.stdout, process.stderr, file=sys.stderr)
        hint = "; on Debian and Ubuntu: apt install python3-venv" if sys.platform == "linux" else ""
        raise SystemExit(fail(f"this Python cannot create a virtual environment{hint}"))
    set_stamp("python", identity())


def identity() -> str:
    return f"{sys.base_prefix} {sys.version} {ROOT}"


def sources() -> str:
    """Return a digest of all build inputs of the extension; Python sources are used in place."""
    digest = hashlib.sha256()
    files = [ROOT / name for name in (".cargo/config.toml", "Cargo.toml", "Cargo.lock", "pyproject.toml")]
    for path in sorted([*files, *(ROOT / "rust").rglob("*.rs")]):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def stamp(name: str) -> str:
    try:
        return (VENV / f"stamp-{name}").read_text("utf-8")
    except OSError:
        return ""


def set_stamp(name: str, value: str) -> None:
    (VENV / f"stamp-{name}").write_text(value, "utf-8")


def cargo() -> str:
    found = shutil.which("cargo")
    if found is None:
        raise SystemExit(fail("cargo is not on the PATH; install a Rust toolchain (1.89 or newer) with rustup"))
    return found


def run(title: str, command: list[object], **options: object) -> None:
    """Run a command, print a line every 10 seconds while it is silent, and exit if it fails."""
    started = last = time.monotonic()
    print(f"{title} ...", flush=True)
    process = subprocess.Popen(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    lock = threading.Lock()

    def tell() -> None:
        nonlocal last
        while process.poll() is None:
            time.sleep(0.2)
            with lock:
                if time.monotonic() - last > SILENCE:
                    last = time.monotonic()
                    print(f"... still {title}, {last - started:.0f} s", flush=True)

    threading.Thread(target=tell, daemon=True).start()
    assert process.stdout is not None
    for line in process.stdout:
        with lock:
            last = time.monotonic()
            print(f"    {line}", end="", flush=True)
    if process.wait() != 0:
        raise SystemExit(fail(f"{title} failed (exit code {process.returncode})"))


def fail(text: str) -> int:
    print(f"dev.py: {text}", file=sys.stderr)
    return 1


COMMANDS = {
    "demo": demo,
    "test": test,
    "lint": lint,
    "docs": docs,
    "bench": bench,
    "fuzz": fuzz,
    "tool": tool,
    "build": lambda rest: build() or 0,
}

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
