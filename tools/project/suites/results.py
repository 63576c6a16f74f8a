"""The results of the test suites in build/tests, and their sum in the form of pytest's summary."""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from cluster.console.report import aligned
from cluster.errors import ClusterError
from project.environment import ROOT

DIRECTORY = ROOT / "build/tests"
SUMMARY = DIRECTORY / "summary.txt"
ORDER = ("passed", "failed", "flaky", "skipped")


def report(expected: Sequence[str]) -> None:
    """Print failed and flaky tests, a line for each suite, and the sum; write the same to build/tests/summary.txt.

    Each suite has written a JSON object: counts, lines of failed and flaky tests, and seconds. `expected` are the names
    of suites; one without a file counts as a failure. Raises ClusterError if a test failed, if none ran, or, with
    FLAKY=fail, if one is flaky.
    """
    files = sorted(DIRECTORY.glob("*.json"), key=lambda file: file.stat().st_mtime)
    suites: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in files}
    suites |= {name: _missing(name) for name in expected if name not in suites}
    found = suites.values()
    total = {each: sum(suite["counts"].get(each, 0) for suite in found) for each in ORDER}
    rows = [(name, phrase(each["counts"]), f"{each['seconds']:.1f} s") for name, each in suites.items()]
    lines = [line for each in found for line in each["lines"]]
    seconds = sum(each["seconds"] for each in found)
    if not any(total[each] for each in ("passed", "failed", "flaky")):
        raise ClusterError("no test ran")
    text = "\n".join([*lines, aligned(rows), f"{phrase(total)} in {seconds:.2f}s"])
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    SUMMARY.write_text(f"{text}\n")
    print(f"\n{text}", flush=True)
    if total["failed"] or (total["flaky"] and os.environ.get("FLAKY") == "fail"):
        raise ClusterError("tests failed" if total["failed"] else "tests are flaky")


def _missing(name: str) -> dict[str, Any]:
    return {"counts": {"failed": 1}, "lines": [f"failed: {name}: it wrote no results"], "seconds": 0.0}


def phrase(counts: Mapping[str, int]) -> str:
    """Numbers of tests in pytest's words, such as "3 passed, 1 failed"."""
    return ", ".join(f"{counts.get(each, 0)} {each}" for each in ORDER if counts.get(each) or each == "passed")
