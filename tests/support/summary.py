"""The results of a suite: a file in build/tests for `python -m project results`, which sums up all suites."""

import json
import os
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parents[2] / "build/tests"
LONGEST = 200
"""Characters of a reason."""


def write(reporter: pytest.TerminalReporter, exitstatus: int, seconds: float) -> None:
    """Write the results of the suite that the variable SUITE names; without it, nothing.

    A test that failed first and passed when it ran once more is flaky. A suite that ends for another reason counts as
    one failure.
    """
    if not (suite := os.environ.get("SUITE")):
        return
    names = {kind: _names(reporter, kind) for kind in ("passed", "failed", "error", "skipped", "rerun")}
    failed = names["failed"] | names["error"]
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not failed and not names["rerun"]:
        failed[suite] = f"pytest ended with exit status {exitstatus:d}"
    flaky = names["rerun"].keys() - failed.keys()
    counts = {
        "passed": len(names["passed"].keys() - flaky - failed.keys()),
        "failed": len(failed),
        "flaky": len(flaky),
        "skipped": len(names["skipped"]),
    }
    lines = [f"failed: {name}: {reason}" for name, reason in failed.items()]
    lines += [f"flaky: {name}: {names['rerun'][name]}" for name in sorted(flaky)]
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"counts": counts, "lines": lines, "seconds": seconds})
    (DIRECTORY / f"{suite}.json").write_text(text)


def _names(reporter: pytest.TerminalReporter, kind: str) -> dict[str, str]:
    """The tests with this result, each with the first line of its reason."""
    kinds = (pytest.TestReport, pytest.CollectReport)
    reports = [each for each in reporter.stats.get(kind, ()) if isinstance(each, kinds)]
    return {each.nodeid: " ".join(_reason(each).split())[:LONGEST] for each in reports}


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", "") or "")
