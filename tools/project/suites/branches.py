"""The coverage that `make coverage` requires: the share of executed branches for each group of files."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.console.report import aligned
from cluster.errors import ClusterError
from project.environment import ROOT

COVERAGE = (sys.executable, "-m", "coverage")
DIRECTORY = ROOT / "build/tests"
"""A file coverage.SUITE for each suite that ran with the variable COVERAGE_FILE and `--cov`."""


@dataclass(frozen=True)
class Group:
    """Files of the same threshold: a name, the least share of branches in percent, and coverage's patterns of paths.

    The suites in `by` must execute the branches together.
    """

    name: str
    least: int
    by: tuple[str, ...]
    patterns: tuple[str, ...]
    without: tuple[str, ...] = ()


AGENT_PURE = (
    "agent/memcached_agent/addresses.py",
    "agent/memcached_agent/extstore/decision.py",
    "agent/memcached_agent/extstore/families.py",
    "agent/memcached_agent/memcached/stats.py",
    "agent/memcached_agent/memory/target.py",
    "agent/memcached_agent/metrics/agent.py",
    "agent/memcached_agent/metrics/arguments.py",
    "agent/memcached_agent/metrics/exposition.py",
    "agent/memcached_agent/metrics/families.py",
    "agent/memcached_agent/metrics/histogram.py",
    "agent/memcached_agent/metrics/memory.py",
    "agent/memcached_agent/metrics/reloads.py",
    "agent/memcached_agent/metrics/restarts.py",
    "agent/memcached_agent/metrics/warm.py",
    "agent/memcached_agent/pod/annotations.py",
    "agent/memcached_agent/pod/fields.py",
    "agent/memcached_agent/pod/record.py",
    "agent/memcached_agent/errors.py",
    "agent/memcached_agent/reload/users_file.py",
    "agent/memcached_agent/sweep/dump.py",
    "agent/memcached_agent/sweep/hash.py",
    "agent/memcached_agent/warm/decision.py",
    "agent/memcached_agent/warm/gate.py",
    "agent/memcached_agent/warm/window.py",
    "agent/memcached_agent/web/messages.py",
)
PURE = (
    *AGENT_PURE,
    "api/*",
    "operator/memcached_operator/*/desired/*",
    "operator/memcached_operator/*/status.py",
    "operator/memcached_operator/memcached/*",
    "operator/memcached_operator/parts/*",
    "operator/memcached_operator/kube/labels.py",
    "operator/memcached_operator/kube/compare.py",
    "operator/memcached_operator/engine/writes/intent.py",
    "operator/memcached_operator/engine/writes/ownership.py",
    "operator/memcached_operator/engine/reporting/conditions.py",
    "webhooks/memcached_webhooks/admission.py",
    "webhooks/memcached_webhooks/expiry.py",
    "webhooks/memcached_webhooks/kinds/*",
    "webhooks/memcached_webhooks/patches.py",
    "webhooks/memcached_webhooks/review.py",
    "webhooks/memcached_webhooks/stored.py",
    "webhooks/memcached_webhooks/defaults.py",
    "webhooks/memcached_webhooks/warnings.py",
)
SERVER = (
    "webhooks/memcached_webhooks/__main__.py",
    "webhooks/memcached_webhooks/bodies.py",
    "webhooks/memcached_webhooks/certwatcher.py",
    "webhooks/memcached_webhooks/metrics.py",
    "webhooks/memcached_webhooks/server.py",
    "operator/memcached_process/*",
)
UNIT, BOTH = ("unit",), ("unit", "integration", "integration-nightly")
GROUPS = (
    Group("pure code", 95, UNIT, PURE),
    Group("agent", 90, BOTH, ("agent/*",), AGENT_PURE),
    Group("client", 90, BOTH, ("operator/memcached_operator/kube/client.py",)),
    Group("apply", 90, BOTH, ("operator/memcached_operator/engine/writes/apply.py",)),
    Group("lease", 90, BOTH, ("operator/memcached_operator/engine/runtime/leader_election.py",)),
    Group("certificates", 90, BOTH, ("operator/memcached_operator/certificates/*",)),
    Group("admission server", 90, BOTH, SERVER),
    Group("plugin", 91, BOTH, ("plugin/*",)),
)


@dataclass(frozen=True)
class Branches:
    """The number of branches, and how many of them the tests executed."""

    covered: int
    number: int

    @property
    def percent(self) -> float:
        """The share in percent; 0 without branches, because then nothing was measured."""
        return 100 * self.covered / self.number if self.number else 0.0


def check() -> None:
    """Print the executed branches of each group. Raises ClusterError for groups that miss their threshold."""
    data = {suites: _combined(suites) for suites in {group.by for group in GROUPS}}
    found = [(group, _branches(group, data[group.by])) for group in GROUPS]
    print(aligned([_row(group, branches) for group, branches in found]), flush=True)
    if problem := missed(found):
        raise ClusterError(problem)


def missed(found: Sequence[tuple[Group, Branches]]) -> str:
    """The groups that miss their threshold, as a sentence; empty if there are none."""
    return "; ".join(
        f"{group.name}: {branches.percent:.1f} % of the branches, at least {group.least} % required"
        for group, branches in found
        if branches.percent < group.least
    )


def _row(group: Group, found: Branches) -> tuple[str, ...]:
    share = f"{found.percent:.1f} %"
    return (f"  {group.name}", " + ".join(group.by), f"{found.covered} of {found.number}", share, f"≥ {group.least} %")


def _combined(suites: Sequence[str]) -> Path:
    """The data of these suites together."""
    data = DIRECTORY / f"coverage.of-{'-'.join(suites)}"
    _coverage(
        "combine", "--quiet", "--keep", f"--data-file={data}", *(f"{DIRECTORY}/coverage.{suite}" for suite in suites)
    )
    return data


def _branches(group: Group, data: Path) -> Branches:
    """The sum over the files of a group."""
    report = DIRECTORY / "coverage.report"
    files = [f"--include={','.join(group.patterns)}", f"--omit={','.join(group.without)}"]
    _coverage("json", "--quiet", f"--data-file={data}", "-o", str(report), *files)
    totals = json.loads(report.read_text())["totals"]
    return Branches(totals["covered_branches"], totals["num_branches"])


def _coverage(*words: str) -> None:
    if code := subprocess.run([*COVERAGE, *words], cwd=ROOT, check=False).returncode:
        raise ClusterError(f"`coverage {words[0]}` failed ({code}): see above")
