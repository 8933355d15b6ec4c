"""Pinned dependencies of builds and releases: actions by hash, crates by the lock file."""

import importlib.util
import json
import re
import runpy
import shutil
import subprocess
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

    @pytest.mark.parametrize(
        ("action", "option"),
        [("checkout", r"persist-credentials: false \}"), ("download-artifact", "(?:pattern|name): ")],
        ids=["checkouts do not persist a token", "downloads name their artifacts"],
    )
    def test_steps_have_an_option(self, path, action, option):
        text = path.read_text("utf-8")
        steps = re.findall(rf"uses: actions/{action}@.*\n\s+with: \{{ {option}", text)
        assert len(steps) == text.count(f"uses: actions/{action}@")


def test_one_action_has_one_version():
    versions = {}
    for path in WORKFLOWS:
        for action, version in re.findall(r"uses: ([^@\s]+)@(.*)", path.read_text("utf-8")):
            versions.setdefault(action, set()).add(version.strip())
    assert versions
    assert {action: found for action, found in versions.items() if len(found) > 1} == {}


def test_every_workflow_builds_with_one_version_of_rust():
    pinned = tomllib.loads((ROOT / ".github" / "rust-toolchain.toml").read_text("utf-8"))["toolchain"]["channel"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", pinned)
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)
    least = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["package"]["rust-version"]
    assert f'toolchain: ["", "{least}.0"]' in text
    others = set(re.findall(r"(?:rustup toolchain install|rustup default|cargo \+)\s*(\S+)", text))
    assert all(re.fullmatch(r"nightly-\d{4}-\d\d-\d\d", name) for name in others)
    for path in WORKFLOWS:
        for job in re.split(r"\n  (?=\w+:)", path.read_text("utf-8")):
            if re.search(r"dev\.py|run: cargo (?!\+)|maturin (?!sdist)|pip install dist/\*\.tar\.gz", job):
                assert "uses: ./.github/actions/rust" in job, job


def test_advisories_are_checked_every_night():
    nightly = [text for path in WORKFLOWS if "schedule:" in (text := path.read_text("utf-8"))]
    for check in ("cargo deny --locked check advisories", "--manifest-path fuzz/Cargo.toml check", "pip-audit"):
        assert any(check in text for text in nightly), check


@pytest.mark.parametrize(
    "name",
    [
        *("Cargo.lock", "fuzz/Cargo.lock", ".github/tools/Cargo.toml", ".github/rust-toolchain.toml"),
        *("pyproject.toml", ".github/build-tools.txt", ".github/tools/requirements.txt", ".github/workflows/ci.yml"),
    ],
)
def test_dependabot_updates_every_list_of_dependencies(name):
    assert (ROOT / name).exists()
    kinds = {
        "Cargo.lock": "cargo",
        "Cargo.toml": "cargo",
        "rust-toolchain.toml": "rust-toolchain",
        "ci.yml": "github-actions",
    }
    kind = kinds.get(Path(name).name, "pip")
    folder = "/" if kind == "github-actions" or "/" not in name else f"/{Path(name).parent}"
    found = [line for line in lines(ROOT / ".github" / "dependabot.yml") if f"package-ecosystem: {kind}," in line]
    covered = [
        part
        for line in found
        for part in re.search(r"director(?:y|ies): (\[[^]]*\]|[^,]*),", line)[1].strip("[]").split(", ")
    ]
    assert folder in covered
    # Updates of the crates come as one change, also of crates of crates, or the two lock files would differ.
    assert kind != "cargo" or (len(found) == 1 and "allow: [{ dependency-type: all }]" in found[0])


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
    assert "dev.py tool cargo-deny" in capsys.readouterr().err


def test_workflows_install_the_watched_tools(dev):
    text = "".join(path.read_text("utf-8") for path in WORKFLOWS)
    assert "cargo install" not in text
    for name, version in tomllib.loads((ROOT / ".github/tools/Cargo.toml").read_text("utf-8"))["dependencies"].items():
        assert f"run: python3 dev.py tool {name}" in text
        assert dev.tool([name]) == 0
        assert dev.commands[-1] == ["cargo", "install", "--locked", f"{name}@{version[1:]}"]


def test_a_wheel_names_the_repository_that_built_it(monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "Someone/fork")
    runpy.run_path(str(ROOT / ".github" / "project_urls.py"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8") + capsys.readouterr().out)["project"]
    assert project["urls"]["Source"] == "https://github.com/Someone/fork"
    assert project["urls"]["Documentation"] == "https://someone.github.io/fork/"
    builds = re.findall(
        r".*\n.*\n.*maturin (?:build|sdist) .*", (ROOT / ".github/workflows/wheels.yml").read_text("utf-8")
    )
    assert len(builds) == 2
    assert all("project_urls.py >> pyproject.toml" in build for build in builds)


def test_code_owners_name_paths_that_exist():
    paths = [line.split()[0] for line in lines(ROOT / ".github" / "CODEOWNERS") if line and not line.startswith("#")]
    assert paths
    assert [path for path in paths if not (ROOT / path[1:]).exists()] == []


def test_the_site_has_a_folder_for_each_version(tmp_path):
    publish = runpy.run_path(str(ROOT / "docs" / "publish.py"))["publish"]
    html, pages = tmp_path / "html", tmp_path / "pages"
    for number, version in enumerate(("main", "v0.9.0", "v0.10.0", "main")):
        html.mkdir(exist_ok=True)
        (html / "index.html").write_text(f"{number}", "utf-8")
        publish(html, pages, version)
        home = (pages / "index.html").read_text("utf-8")
        assert f'href="{"main" if number == 0 else "v0.9.0" if number == 1 else "v0.10.0"}/"' in home
    assert json.loads((pages / "versions.json").read_text("utf-8")) == ["v0.10.0", "v0.9.0", "main"]
    assert (pages / "main" / "index.html").read_text("utf-8") == "3"
    with pytest.raises(SystemExit, match="neither main nor the tag"):
        publish(html, pages, "topic")


def test_lint_in_ci_fails_without_cargo_deny(dev, monkeypatch):
    monkeypatch.setattr(dev.shutil, "which", lambda name, **options: None)
    monkeypatch.setenv("CI", "true")
    assert dev.lint([]) == 1


def shipped():
    """Return the crates in the file of licence texts, as names and versions."""
    text = (ROOT / "THIRD-PARTY-LICENSES.txt").read_text("utf-8")
    return re.findall(r"^([\w-]+) (\d\S*) \(.+\)$", text, re.MULTILINE), text


def test_licence_texts_are_those_of_the_locked_crates():
    crates, text = shipped()
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
    assert len(crates) > 50
    assert {*crates} <= {(crate["name"], crate["version"]) for crate in locked}
    assert {name for name, _ in crates} >= {"arrow-array", "numpy", "pyo3", "rand", "windows-link", "zlib-rs"}
    assert {name for name, _ in crates}.isdisjoint({"discreet", "syn", "pyo3-macros", "proc-macro2"})
    for part in ("Redistribution and use in source and binary forms", "Permission is hereby granted", "Apache Arrow"):
        assert part in text


def test_every_crate_that_is_linked_here_has_its_licence_text():
    if not shutil.which("cargo"):
        pytest.skip("cargo is not installed")
    made = runpy.run_path(str(ROOT / ".github" / "third_party.py"))
    assert len(made["targets"]()) == 7
    machine = re.search("(?m)^host: (.*)$", subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout)[1]
    crates, text = shipped()
    for crate in made["linked"](machine):
        assert (crate["name"], crate["version"]) in crates, crate["name"]
        for own in made["texts"](crate):
            assert own.strip("\n").splitlines()[-1].rstrip() in text, crate["name"]


def test_a_wheel_has_the_licence_texts():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["license-files"] == ["LICENSE", "THIRD-PARTY-LICENSES.txt"]
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8")
    assert "grep licenses/THIRD-PARTY-LICENSES.txt" in workflow
    assert "third_party.py --check" in workflow
