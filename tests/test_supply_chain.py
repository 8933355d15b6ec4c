"""Pinned dependencies of builds and releases: actions by hash, crates by the lock file."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)+")
# Subcommands of cargo and maturin that resolve crates. `cargo fmt` and `maturin sdist` resolve none.
CARGO = r"cargo(?: \S*\+\S+)? (?:bench|build|check|clippy|fetch|install|miri|run|rustc|test)"
BUILDS = re.compile(rf"(?:{CARGO}|maturin (?:build|develop))\b.*")


def lines(path):
    return path.read_text("utf-8").splitlines()


@pytest.fixture
def dev(monkeypatch):
    """`dev.py` as a module whose commands are recorded instead of run."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.commands = []
    record = lambda command: module.commands.append([Path(command[0]).name, *map(str, command[1:])])  # noqa: E731
    monkeypatch.setattr(module, "build", lambda *groups: None)
    monkeypatch.setattr(module, "cargo", lambda: "cargo")
    monkeypatch.setattr(module, "run", lambda title, command, **options: record(command))
    monkeypatch.setattr(module.subprocess, "call", lambda command, **options: record(command) or 0)
    return module


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
class TestWorkflow:
    def test_actions_are_pinned_by_commit_hash(self, path):
        used = [line.split("uses:")[1].strip() for line in lines(path) if re.match(r"\s*(- )?uses:", line)]
        assert used
        for action in used:
            assert action.startswith("./") or PINNED.fullmatch(action), action

    def test_builds_use_the_lock_file(self, path):
        for line in lines(path):
            for command in BUILDS.findall(line):
                assert "--locked" in command.split(), command

    def test_the_token_can_only_read_contents_by_default(self, path):
        assert "permissions: { contents: read }" in lines(path)

    def test_checkouts_do_not_persist_a_token(self, path):
        text = path.read_text("utf-8")
        steps = re.findall(r"uses: actions/checkout@.*\n\s+with: \{ persist-credentials: false \}", text)
        assert len(steps) == text.count("uses: actions/checkout@")

    def test_downloads_name_their_artifacts(self, path):
        text = path.read_text("utf-8")
        steps = re.findall(r"uses: actions/download-artifact@.*\n\s+with: \{ (?:pattern|name): ", text)
        assert len(steps) == text.count("uses: actions/download-artifact@")


def test_one_action_has_one_version():
    versions = {}
    for path in WORKFLOWS:
        for action, version in re.findall(r"uses: ([^@\s]+)@(.*)", path.read_text("utf-8")):
            versions.setdefault(action, set()).add(version.strip())
    assert versions
    assert {action: found for action, found in versions.items() if len(found) > 1} == {}


def test_every_workflow_builds_with_one_version_of_rust():
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)
    used = set(re.findall(r"(?:toolchain install|rustup default|cargo) \+?(\d[\d.]*|stable|beta|nightly\S*)", text))
    (version,) = {name for name in used if not re.fullmatch(r"nightly-\d{4}-\d\d-\d\d", name)}
    least = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["package"]["rust-version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert f'toolchain: ["{version}", "{least}.0"]' in text
    for path in WORKFLOWS:
        for job in re.split(r"\n  (?=\w+:\n)", path.read_text("utf-8")):
            if re.search(r"dev\.py|cargo|maturin (?!sdist)|pip install dist/\*\.tar\.gz", job):
                assert "rustup toolchain install" in job, job


def test_advisories_are_checked_every_night():
    nightly = [text for path in WORKFLOWS if "schedule:" in (text := path.read_text("utf-8"))]
    for check in ("cargo deny --locked check advisories", "--manifest-path fuzz/Cargo.toml check", "pip-audit"):
        assert any(check in text for text in nightly), check


@pytest.mark.parametrize(
    "name", ["Cargo.lock", "fuzz/Cargo.lock", "pyproject.toml", ".github/build-tools.txt", ".github/workflows/ci.yml"]
)
def test_dependabot_updates_every_list_of_dependencies(name):
    kind = {".lock": "cargo", ".yml": "github-actions"}.get(Path(name).suffix, "pip")
    folder = (
        "/" if kind == "github-actions" else f"/{Path(name).parent}".replace("/.", "/", Path(name).parent == Path())
    )
    found = [line for line in lines(ROOT / ".github" / "dependabot.yml") if f"package-ecosystem: {kind}," in line]
    covered = [
        part
        for line in found
        for part in re.search(r"director(?:y|ies): (\[[^]]*\]|[^,]*),", line)[1].strip("[]").split(", ")
    ]
    assert folder in covered
    # Updates of the crates come as one change, or the two lock files would differ.
    assert kind != "cargo" or len(found) == 1


def test_fuzzing_uses_the_shipped_versions_of_crates():
    locks = [tomllib.loads((ROOT / name).read_text("utf-8"))["package"] for name in ("Cargo.lock", "fuzz/Cargo.lock")]
    shipped, fuzzed = ({(crate["name"], crate["version"]) for crate in lock} for lock in locks)
    known = {name for name, _ in shipped}
    assert {crate for crate in fuzzed if crate[0] in known} <= shipped


def test_all_fuzz_targets_run(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda name, **options: name)
    monkeypatch.setattr(dev.sys, "platform", "linux")
    assert dev.fuzz(["--seconds", "7"]) == 0
    runs = [made for made in dev.commands if "-max_total_time=7" in made]
    names = {Path(part).stem for made in runs for part in made}
    assert {path.stem for path in (ROOT / "fuzz" / "targets").iterdir()} <= names
    assert not any(made[:2] == ["cargo", "fetch"] and "--locked" not in made for made in dev.commands)


def test_wheels_are_built_from_the_lock_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["maturin"]["locked"] is True


def test_build_tools_of_wheels_are_pinned_by_hash():
    text = (ROOT / ".github" / "build-tools.txt").read_text("utf-8").replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert {pin.split("==")[0] for pin in pins} == {"maturin", "ziglang"}
    for pin in pins:
        assert re.fullmatch(r"\S+==\S+( ;[^-]*)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", pin), pin
    assert "pip install --require-hashes" in (ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8")


@pytest.mark.parametrize("command", ["test", "lint"])
def test_cargo_commands_use_the_lock_file(dev, monkeypatch, command):
    monkeypatch.setattr(dev.shutil, "which", lambda name, **options: name)
    assert dev.COMMANDS[command]([]) == 0
    resolving = [made for made in dev.commands if BUILDS.fullmatch(" ".join(made))]
    assert resolving
    for made in resolving:
        assert "--locked" in made, made


def test_lint_checks_the_licences_and_sources_of_crates(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda name, **options: name)
    assert dev.lint([]) == 0
    assert ["cargo", "deny", "--locked", "check", "bans", "licenses", "sources"] in dev.commands


def test_lint_without_cargo_deny_names_its_installation(dev, monkeypatch, capsys):
    monkeypatch.setattr(dev.shutil, "which", lambda name, **options: None)
    monkeypatch.delenv("CI", raising=False)
    assert dev.lint([]) == 0
    assert not any("deny" in made for made in dev.commands)
    assert "cargo install --locked cargo-deny" in capsys.readouterr().err


def test_workflows_install_the_tools_of_lint_and_fuzz(dev):
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)
    assert f"cargo-deny@{dev.DENY}" in text
    assert f"cargo-fuzz@{dev.CARGO_FUZZ}" in text


def test_lint_in_ci_fails_without_cargo_deny(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda name, **options: None)
    monkeypatch.setenv("CI", "true")
    assert dev.lint([]) == 1
