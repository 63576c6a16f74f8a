"""`.ci/run` types the commands of the README, and its last line is the sum of all suites, even if it fails early."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
SUMMARY = "build/tests/summary.txt"
GREEN = "unit  3 passed  1.0 s\n3 passed in 1.00s\n"
RED = "unit  3 passed, 1 failed  1.0 s\nnot run: e2e\n3 passed, 2 failed in 1.00s\n"
FLAKY = "flaky: a\nunit  3 passed, 1 flaky  1.0 s\n3 passed, 1 flaky in 1.00s\n"
ALSO_FAILED = "unit  3 passed  1.0 s\n3 passed, 1 failed in 1.00s\n"
NONE = r"not run: all suites\n0 passed, 1 failed in \d+\.\d\ds\n"
TOOLS = ("bash", "env", "date", "dirname", "rm", "cat", "tail", "grep", "make", "python3")
TYPED = ["make demo", "make check", "make test"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """`.ci/run` in a tree with the summary of an earlier run."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "build/tests").mkdir(parents=True)
    (tmp_path / SUMMARY).write_text(RED.replace("3", "99"))
    return Path(shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run"))


def run(script: Path, make: str) -> subprocess.CompletedProcess[str]:
    """The result of the script with another `make`, which records its arguments."""
    fake = script.parent / "make"
    fake.write_text(f'#!/bin/sh\necho "make $*" >>"{script.parent}/commands"\ncase $1 in\n{make}\nesac\n')
    fake.chmod(0o755)
    env = {**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}"}
    return subprocess.run([str(script)], env=env, capture_output=True, text=True, check=False)


def written(summary: str, code: int, target: str = "test-rest") -> str:
    """A target that writes this summary."""
    return f"{target}) printf '{summary}' >{SUMMARY}; exit {code};;"


@pytest.mark.parametrize(
    ("make", "code", "end"),
    [
        (written(GREEN, 0), 0, re.escape(GREEN)),
        (written(RED, 1), 1, re.escape(RED)),
        (written(FLAKY, 0), 0, re.escape(FLAKY)),
        (written(FLAKY, 1), 1, re.escape(FLAKY.replace("passed, 1 flaky in", "passed, 1 failed, 1 flaky in"))),
        (f"test) exit 1;; {written(RED, 0)}", 1, re.escape(RED)),
        (written(GREEN, 0) + "cluster-down) exit 1;;", 0, re.escape(GREEN)),
        ("test-rest) exit 0;;", 1, NONE),
        ("*) exit 2;;", 2, NONE),
        (f"check) exit 2;; {written(GREEN, 0)}", 2, re.escape(ALSO_FAILED)),
        (written(GREEN, 130), 130, re.escape(ALSO_FAILED)),
        ("check) kill -TERM $PPID;;", 143, NONE),
    ],
)
def test_last_line_is_the_sum(make: str, code: int, end: str, script: Path) -> None:
    done = run(script, make)
    assert done.returncode == code
    assert re.search(rf"exit code {code}\n{end}\Z", done.stdout), done.stdout


def test_failed_command_does_not_stop_the_next_one(script: Path) -> None:
    assert run(script, "demo|check|test) exit 2;;").returncode == 2
    assert (script.parent / "commands").read_text().splitlines() == [*TYPED, "make test-rest", "make cluster-down"]


def commands_of(text: str) -> list[str]:
    """The lines of a text that start with `make`, without comments."""
    return [line.split("  #")[0].strip() for line in text.splitlines() if line.startswith("make ")]


def test_it_types_the_commands_of_the_readme() -> None:
    section = (ROOT / "README.md").read_text().split("## Try it\n")[1].split("\n## ")[0]
    assert commands_of(section) == TYPED
    typed = re.findall(r'^run "\$\{login\[@\]\}" "(.+)"$', (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert typed == TYPED


def test_workflow_types_them_as_an_ordinary_user() -> None:
    steps = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())["jobs"]["check"]["steps"]
    assert [step["run"] for step in steps if step.get("run", "").startswith("make ")] == TYPED


@pytest.mark.parametrize("name", ["ARGS", "KUBECONFIG", "PYTEST_ADDOPTS", "MAKEFLAGS", "CLUSTER", "OVERLAY", "CI"])
def test_environment_is_that_of_a_login_shell(name: str, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-n")
    assert run(script, f'*) [ -z "${{{name}:-}}" ] || exit 3;; esac; case $1 in {written(GREEN, 0)}').returncode == 0


def test_missing_prerequisite_is_named_before_the_sum(script: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    (programs / "id").symlink_to(shutil.which("false") or "")
    done = subprocess.run([str(script)], env={"PATH": str(programs)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("missing: git")
    assert re.search(NONE + r"\Z", done.stdout)
