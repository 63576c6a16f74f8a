"""The results of the test suites in build/tests, and their sum in the form of pytest's summary."""

import json
from collections.abc import Mapping
from typing import Any

from cluster.console.report import aligned
from cluster.errors import ClusterError
from project.environment import ROOT

DIRECTORY = ROOT / "build/tests"
SUMMARY = DIRECTORY / "summary.txt"
ORDER = ("passed", "failed", "flaky", "skipped")


def report() -> None:
    """Print failed and flaky tests, a line for each suite, and the sum; write the same to build/tests/summary.txt.

    Each suite has written a JSON object: counts, lines of failed and flaky tests, and seconds. Raises ClusterError if
    no test ran.
    """
    files = sorted(DIRECTORY.glob("*.json"), key=lambda file: file.stat().st_mtime)
    suites: dict[str, Any] = {file.stem: json.loads(file.read_text()) for file in files}
    found = suites.values()
    total = {each: sum(suite["counts"].get(each, 0) for suite in found) for each in ORDER}
    if not any(total[each] for each in ("passed", "failed", "flaky")):
        raise ClusterError("no test ran")
    rows = [(name, phrase(each["counts"]), f"{each['seconds']:.1f} s") for name, each in suites.items()]
    lines = [line for each in found for line in each["lines"]]
    seconds = sum(each["seconds"] for each in found)
    text = "\n".join([*lines, aligned(rows), f"{phrase(total)} in {seconds:.2f}s"])
    SUMMARY.write_text(f"{text}\n")
    print(f"\n{text}", flush=True)


def phrase(counts: Mapping[str, int]) -> str:
    """Numbers of tests in pytest's words, such as "3 passed, 1 failed"."""
    return ", ".join(f"{counts.get(each, 0)} {each}" for each in ORDER if counts.get(each) or each == "passed")
