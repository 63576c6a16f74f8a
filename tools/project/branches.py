"""The coverage that the gate requires: the share of executed branches for each group of files."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cluster.console.report import aligned
from project.environment import ROOT

COVERAGE = (sys.executable, "-m", "coverage")
MEASURED = ("--cov", "--cov-report=")
"""Options for pytest. pyproject.toml names the packages; processes that tests start are measured, too."""


@dataclass(frozen=True)
class Group:
    """Files of the same threshold: a name, the least share of branches in percent, and patterns of paths."""

    name: str
    least: int
    patterns: tuple[str, ...]

    def matches(self, path: str) -> bool:
        """Whether a file belongs to the group. `*` matches folders as well."""
        return any(fnmatchcase(path, each) for each in self.patterns)


PURE = Group(
    "pure code",
    95,
    (
        "agent/memcached_agent/addresses.py",
        "agent/memcached_agent/memcached/stats.py",
        "agent/memcached_agent/memory/decision.py",
        "agent/memcached_agent/memory/target.py",
        "agent/memcached_agent/metrics/agent.py",
        "agent/memcached_agent/metrics/exposition.py",
        "agent/memcached_agent/metrics/families.py",
        "agent/memcached_agent/metrics/memory.py",
        "agent/memcached_agent/metrics/reloads.py",
        "agent/memcached_agent/metrics/restarts.py",
        "agent/memcached_agent/metrics/warm.py",
        "agent/memcached_agent/pod/annotations.py",
        "agent/memcached_agent/pod/fields.py",
        "agent/memcached_agent/pod/record.py",
        "agent/memcached_agent/reload/errors.py",
        "agent/memcached_agent/reload/users.py",
        "agent/memcached_agent/warm/decision.py",
        "agent/memcached_agent/warm/gate.py",
        "agent/memcached_agent/warm/window.py",
        "agent/memcached_agent/web/messages.py",
        "api/*",
        "operator/memcached_operator/*/desired/*",
        "operator/memcached_operator/*/status.py",
        "operator/memcached_operator/kube/labels.py",
        "operator/memcached_operator/reconcile/compare.py",
        "operator/memcached_operator/reconcile/ownership.py",
        "operator/memcached_operator/status/conditions.py",
        "webhooks/memcached_webhooks/admission.py",
        "webhooks/memcached_webhooks/expiry.py",
        "webhooks/memcached_webhooks/kinds/*",
        "webhooks/memcached_webhooks/patches.py",
        "webhooks/memcached_webhooks/review.py",
        "webhooks/memcached_webhooks/warnings.py",
    ),
)
"""Covered by the unit tests alone."""
INPUT_OUTPUT = (
    Group(
        "agent",
        90,
        (
            "agent/memcached_agent/__init__.py",
            "agent/memcached_agent/__main__.py",
            "agent/memcached_agent/app.py",
            "agent/memcached_agent/json_logs.py",
            "agent/memcached_agent/logs.py",
            "agent/memcached_agent/options.py",
            "agent/memcached_agent/shared.py",
            "agent/memcached_agent/version.py",
            "agent/memcached_agent/*/__init__.py",
            "agent/memcached_agent/memcached/client.py",
            "agent/memcached_agent/memcached/connection.py",
            "agent/memcached_agent/memcached/errors.py",
            "agent/memcached_agent/memcached/login.py",
            "agent/memcached_agent/memory/growth.py",
            "agent/memcached_agent/metrics/exporter.py",
            "agent/memcached_agent/pod/files.py",
            "agent/memcached_agent/reload/accounts.py",
            "agent/memcached_agent/reload/certificates.py",
            "agent/memcached_agent/reload/files.py",
            "agent/memcached_agent/reload/pairs.py",
            "agent/memcached_agent/reload/processes.py",
            "agent/memcached_agent/reload/served.py",
            "agent/memcached_agent/reload/watcher.py",
            "agent/memcached_agent/reload/wiring.py",
            "agent/memcached_agent/warm/warmth.py",
            "agent/memcached_agent/watcher.py",
            "agent/memcached_agent/web/health.py",
            "agent/memcached_agent/web/server.py",
            "agent/memcached_agent/web/tls.py",
        ),
    ),
    Group("client", 90, ("operator/memcached_operator/kube/client.py",)),
    Group("apply", 90, ("operator/memcached_operator/reconcile/apply.py",)),
    Group("lease", 90, ("operator/memcached_operator/runtime/leader_election.py",)),
    Group("certificates", 90, ("operator/memcached_operator/certificates/*",)),
    Group(
        "admission server",
        90,
        (
            "webhooks/memcached_webhooks/__main__.py",
            "webhooks/memcached_webhooks/bodies.py",
            "webhooks/memcached_webhooks/certwatcher.py",
            "webhooks/memcached_webhooks/metrics.py",
            "webhooks/memcached_webhooks/server.py",
            "operator/memcached_process/*",
        ),
    ),
)
"""Covered by the unit and integration tests together."""
CHECKS: dict[tuple[str, ...], Sequence[Group]] = {("unit",): (PURE,), ("unit", "integration"): INPUT_OUTPUT}
"""The groups to check when these runs have been measured."""


@dataclass(frozen=True)
class Branches:
    """The number of branches, and how many of them the tests executed."""

    covered: int
    number: int

    @property
    def percent(self) -> float:
        """The share in percent; 0 without branches, because then nothing was measured."""
        return 100 * self.covered / self.number if self.number else 0.0


def data_file(directory: Path, run: str) -> Path:
    """Where coverage keeps the data of a run."""
    return directory / f"coverage.{run}"


def problem(directory: Path, measured: Sequence[str]) -> str:
    """Print the groups to check after these runs; return which of them miss their threshold, or an empty string."""
    groups = CHECKS.get(tuple(measured))
    if not groups:
        return ""
    figures = _figures(directory, measured)
    rows = [_row(group, branches_of(group, figures)) for group in groups]
    print(f"\nBranches executed by the {' and '.join(measured)} tests:\n{aligned(rows)}", flush=True)
    return missed(groups, figures)


def missed(groups: Sequence[Group], figures: Mapping[str, Branches]) -> str:
    """The groups that miss their threshold, as a sentence; empty if there are none."""
    found = [(group, branches_of(group, figures)) for group in groups]
    words = [
        f"{group.name}: {found.percent:.1f} % of the branches, at least {group.least} % required"
        for group, found in found
        if found.percent < group.least
    ]
    return "; ".join(words)


def branches_of(group: Group, figures: Mapping[str, Branches]) -> Branches:
    """The sum over the files of a group."""
    mine = [each for path, each in figures.items() if group.matches(path)]
    return Branches(sum(each.covered for each in mine), sum(each.number for each in mine))


def _row(group: Group, found: Branches) -> tuple[str, ...]:
    return (
        f"  {group.name}",
        f"{found.covered} of {found.number}",
        f"{found.percent:.1f} %",
        f"at least {group.least} %",
    )


def _figures(directory: Path, measured: Sequence[str]) -> dict[str, Branches]:
    """The branches of each file, from the data of all these runs together."""
    data, report = directory / "coverage.all", directory / "coverage.json"
    files = [str(data_file(directory, run)) for run in measured]
    _coverage("combine", "--quiet", "--keep", f"--data-file={data}", *files)
    _coverage("json", "--quiet", f"--data-file={data}", "-o", str(report))
    return figures_of(report.read_text())


def figures_of(text: str) -> dict[str, Branches]:
    """The branches of each file in the output of `coverage json`."""
    summaries = {path: each["summary"] for path, each in json.loads(text)["files"].items()}
    return {path: Branches(each["covered_branches"], each["num_branches"]) for path, each in summaries.items()}


def _coverage(*words: str) -> None:
    subprocess.run([*COVERAGE, *words], cwd=ROOT, check=True)
