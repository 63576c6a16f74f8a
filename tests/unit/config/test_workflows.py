"""`make workflows` lints the GitHub workflows, and the workflows agree with the rest of the project."""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from faults.__main__ import all_cases
from unit.config.makefile import phony
from unit.config.rendered import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").iterdir())
COMMAND = r"(?:sudo \S+ )?(?:make(?: [a-z-]+)+|(?:\${{ matrix\.as }} )?make \${{ matrix\.target }}|\.ci/run)"
HAND_OVER = 'sudo chown -R "$(id -u):$(id -g)" . "$HOME/.cache/memcached-operator"'
"""Gives the user the files that a job has written as root, so that later steps can read and replace them."""
LONG = {"test-faults", "test-corners", "test-soak", "test-clients", "bench"}
"""Targets that are too long for `make test`."""
LIMIT = 360
"""Minutes that GitHub allows for a job."""
PINNED = r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
VALID = """
on: push
jobs:
  one:
    runs-on: ubuntu-24.04
    steps:
      - run: make check
"""


def read(path: Path) -> dict[Any, Any]:
    """A parsed workflow; YAML 1.1 parses the key `on` as True."""
    return yaml.safe_load(path.read_text())


def jobs() -> Iterator[dict[str, Any]]:
    """All jobs of all workflows."""
    for path in WORKFLOWS:
        yield from read(path)["jobs"].values()


def steps() -> Iterator[dict[str, Any]]:
    """All steps of all jobs."""
    for job in jobs():
        yield from job["steps"]


def lint(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The result of `make workflows` for one workflow."""
    path = folder / "workflow.yaml"
    path.write_text(text)
    words = ["make", "--silent", "workflows", f"WORKFLOWS={path}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def matrix() -> list[dict[str, Any]]:
    """The long jobs of the nightly workflow."""
    return read(ROOT / ".github/workflows/nightly.yaml")["jobs"]["long"]["strategy"]["matrix"]["include"]


def limits(job: dict[str, Any]) -> list[int]:
    """The time limits of a job, in minutes: one, or those of its matrix."""
    if job["timeout-minutes"] == "${{ matrix.minutes }}":
        return [each["minutes"] for each in job["strategy"]["matrix"]["include"]]
    return [job["timeout-minutes"]]


def test_valid_workflow_passes(tmp_path: Path) -> None:
    done = lint(VALID, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ubuntu-24.04", "ubuntu-24", 'label "ubuntu-24" is unknown'),
        ("make check", "make ${{ matrix.target }}", 'property "target" is not defined'),
        ("make check", "echo ${{ github.event.issue.title }}", '"github.event.issue.title" is potentially untrusted'),
        ("    steps:", "    step:", 'unexpected key "step"'),
    ],
)
def test_invalid_workflow_fails(old: str, new: str, message: str, tmp_path: Path) -> None:
    done = lint(VALID.replace(old, new), tmp_path)
    assert done.returncode != 0
    assert message in done.stdout


def test_make_lints_every_workflow() -> None:
    found = re.search(r"^WORKFLOWS \?= (.+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert found
    assert sorted(ROOT.glob(found[1])) == WORKFLOWS


def test_workflows_run_only_make_and_ci_run() -> None:
    commands = [step["run"] for step in steps() if "run" in step and step["run"] != HAND_OVER]
    assert [command for command in commands if not re.fullmatch(COMMAND, command)] == []
    words = {word for command in commands for word in command.partition("make ")[2].split()}
    used = {word for word in words if word.isidentifier() or "-" in word}
    assert {"check", "test-unit"} <= used <= phony()
    assert any(command.endswith(".ci/run") for command in commands)


def test_every_long_target_runs_nightly() -> None:
    assert {each["target"] for each in matrix()} == LONG <= phony()


def test_nightly_fault_tests_keep_the_logs_of_failed_cases() -> None:
    jobs = [job for job in matrix() if job["target"] in ("test-faults", "test-soak")]
    assert jobs
    assert {job.get("arguments") for job in jobs} == {"--keep=build/faults/logs"}


def test_nightly_jobs_that_run_as_root_keep_their_arguments_and_leave_no_files_of_root() -> None:
    assert {each["target"] for each in matrix() if "as" in each} == {"test-clients", "test-corners"}
    (as_root,) = {each["as"] for each in matrix() if "as" in each}
    steps = read(ROOT / ".github/workflows/nightly.yaml")["jobs"]["long"]["steps"]
    (make,) = [number for number, step in enumerate(steps) if step.get("run", "").startswith("${{ matrix.as }} make")]
    assert as_root == f'sudo --preserve-env={",".join(steps[make]["env"])} XDG_CACHE_HOME="$HOME/.cache"'
    assert steps[make + 1]["run"] == HAND_OVER
    assert steps[make + 1]["if"] == "always() && matrix.as"


@pytest.mark.parametrize("job", ["gate", "long"])
def test_nightly_jobs_cache_the_memcacheds_of_the_corner_tests(job: str) -> None:
    steps = read(ROOT / ".github/workflows/nightly.yaml")["jobs"][job]["steps"]
    (cache,) = [step["with"] for step in steps if step.get("uses", "").startswith("actions/cache@")]
    assert "~/.cache/memcached-operator/memcached" in cache["path"].split()
    assert "'tests/corners/programs.py'" in cache["key"]


def test_long_jobs_with_other_contents_have_other_caches() -> None:
    steps = read(ROOT / ".github/workflows/nightly.yaml")["jobs"]["long"]["steps"]
    (cache,) = [step["with"] for step in steps if step.get("uses", "").startswith("actions/cache@")]
    assert "${{ matrix.target }}" in cache["key"]


def test_every_fault_case_runs_in_one_nightly_job() -> None:
    patterns = {each["name"]: shlex.split(each["names"]) for each in matrix() if each["target"] == "test-faults"}
    patterns["soak"] = ["T13/soak"]
    for case in all_cases():
        found = [name for name, given in patterns.items() if any(fnmatchcase(case.name, each) for each in given)]
        assert len(found) == 1, case.name


def test_results_are_kept_even_of_failed_jobs() -> None:
    for job in read(ROOT / ".github/workflows/nightly.yaml")["jobs"].values():
        last = job["steps"][-1]
        assert last["uses"].startswith("actions/upload-artifact@")
        assert last["if"] == "always()"


def test_ci_runs_on_the_oldest_supported_python_and_the_image_python() -> None:
    (job,) = read(ROOT / ".github/workflows/ci.yaml")["jobs"].values()
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    image = re.search(r"^ARG BASE_IMAGE=\S*/python:([\d.]+)", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert image
    assert job["strategy"]["matrix"]["python"] == [oldest.removeprefix(">="), image[1]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_only_and_have_timeouts(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert all(0 < minutes <= LIMIT for minutes in limits(job))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    lines = [line.strip(" -") for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not re.fullmatch(PINNED, line)] == []


def test_checkouts_do_not_persist_credentials() -> None:
    checkouts = [step for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == len([*jobs()])
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_cache_keys_name_files_that_exist() -> None:
    keys = [step["with"]["key"] for step in steps() if step.get("uses", "").startswith("actions/cache@")]
    assert len(keys) == len({*keys}) == len([*jobs()])
    for key in keys:
        patterns = re.findall(r"'([^']+)'", key)
        assert "tools/go/**" in patterns
        assert [pattern for pattern in patterns if not list(ROOT.glob(pattern))] == []
    locks = [step["with"]["cache-dependency-path"] for step in steps() if "cache" in step.get("with", {})]
    assert locks == ["requirements/dev.txt"]
