"""The GitHub workflows are safe and complete; `make workflows` lints them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.versions import SUPPORTED
from faults.cases import all_cases
from unit.config.rendered import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").iterdir())
PINNED = r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"


def steps(path: Path) -> Iterator[dict[str, Any]]:
    """All steps of all jobs of a workflow."""
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        yield from job["steps"]


WRITERS = {
    "release.yaml": {
        "publish": {"attestations": "write", "contents": "write", "id-token": "write"},
        "attest": {"attestations": "write", "id-token": "write"},
    }
}
"""The jobs that may write, by workflow, with their permissions."""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_only_and_their_jobs_have_time_limits(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    given = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert given == WRITERS.get(path.name, {})
    assert [name for name, job in workflow["jobs"].items() if "timeout-minutes" not in job] == []


def test_only_a_tag_starts_a_workflow_that_may_write() -> None:
    for name in WRITERS:
        # YAML 1.1 reads the key `on` as true.
        assert yaml.safe_load((ROOT / ".github/workflows" / name).read_text())[True] == {"push": {"tags": ["v*"]}}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_and_checkouts_do_not_persist_credentials(path: Path) -> None:
    lines = [line.strip(" -") for line in path.read_text().splitlines() if "uses:" in line]
    assert [line for line in lines if not re.fullmatch(PINNED, line)] == []
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert [step for step in checkouts if step.get("with", {}).get("persist-credentials") is not False] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_cannot_be_misused_by_a_pull_request(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"pull_request_target|workflow_run", text)
    # Expressions in a script run as a part of it: only those whose values the workflow itself sets.
    scripts = [step["run"] for step in steps(path) if "run" in step]
    expressions = [each for script in scripts for each in re.findall(r"\$\{\{ *([^ }]+)", script)]
    assert [each for each in expressions if not each.startswith("matrix.")] == []


def nightly() -> list[dict[str, Any]]:
    """The entries of the matrices of nightly.yaml."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/nightly.yaml").read_text())["jobs"]
    return [each for job in jobs.values() for each in job.get("strategy", {}).get("matrix", {}).get("include", ())]


def test_each_supported_kubernetes_is_tested_nightly() -> None:
    jobs = [each for each in nightly() if each["target"] == "test-servers"]
    assert sorted(f"v{each['kubernetes']}" for each in jobs) == sorted(SUPPORTED)


def test_every_fault_case_runs_in_one_nightly_job() -> None:
    words = [shlex.split(each["arguments"]) for each in nightly() if each["target"] == "test-faults"]
    parts = [part for each in words for part in each[each.index("-k") + 1].split(" or ")]
    tests = {f"test_case[{name}]" for name in all_cases()} - {"test_case[soak/long]"} | {"test_mutant_is_detected"}
    assert {test: n for test in tests if (n := sum(part in test for part in parts)) != 1} == {}
