"""Results of cases: every attempt, kept between runs, published in compact form, and their figures in the docs."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from faults.campaigns.mutants import mutants
from faults.case import Case
from faults.process import ROOT
from faults.runner import INTERRUPTED, Result
from faults.sources import digest, measured
from pages.blocks import table

RESULTS = ROOT / "build/faults/results.jsonl"
"""One line per attempt, in their order, of all sources. `make clean` removes it."""
PUBLISHED = ROOT / "docs/reliability-results.csv"
"""The published results, one line per case: name, each attempt (ok, failed or interrupted), seconds of the last one,
error of the first failed one, note of the last one. The first line has the digest of the sources, and the date."""
WORDS = {"": "ok", INTERRUPTED: INTERRUPTED}
"""How the published results call an attempt with this error; every other one has failed."""
HEAD = re.compile(r"# sources ([0-9a-f]+), (\d{4}-\d\d-\d\d)\n")
CAMPAIGNS = {
    "T1": "the operator is killed before, during and after every write, and around a deletion",
    "T2": "a write is executed, but its reply is lost",
    "T3": "a write is rejected once, 3 times, 20 times, or for 60 s",
    "T4": "lists and watches fail",
    "T5": "stale lists, late events, and objects that are recreated while their watch is delayed",
    "T6": "the spec changes while the operator is down or receives no events",
    "T7": "another client changes, deletes or adopts a child",
    "T8": "every field in the CRDs of both kinds",
    "T9": "the webhook fails",
    "T10": "the certificate files change, or the issuer's objects change",
    "T11": "two operators at the same time",
    "T12": "problems of namespaces, quotas, Pod Security, CRDs and permissions",
    "T13": "soak test",
    "T14": "mutants of the operator, each detected by a case",
    "T15": "faults of memcached and of clients, as the agent sees them",
    "T16": "pods are updated in place, one at a time, with a simulated kubelet",
    "T17": "one tenant floods its namespace, and the operator has the memory limit of its pod",
    "T18": "one tenant makes the operator work, and the objects of another one are reconciled in time",
    "fuzz": "random objects and requests",
}


@dataclass(frozen=True)
class History:
    """All attempts of one case, oldest first."""

    attempts: tuple[Result, ...]

    @property
    def last(self) -> Result:
        """The attempt that counts: an interrupted one does only if there is no other."""
        complete = [each for each in self.attempts if each.error != INTERRUPTED]
        return (complete or self.attempts)[-1]

    @property
    def failures(self) -> tuple[Result, ...]:
        """The attempts that failed. One that was interrupted has no result."""
        return tuple(each for each in self.attempts if each.error not in ("", INTERRUPTED))


def keep(result: Result) -> None:
    """Keep a result for the next report."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    append(RESULTS, result)


def append(path: Path, result: Result) -> None:
    """Append a result to a file, as a line of JSON."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(result) + b"\n")


def histories() -> dict[str, History]:
    """Every attempt of each case with the present sources of the product. Others say nothing about these sources."""
    if not RESULTS.exists():
        return {}
    present = digest()
    found: dict[str, list[Result]] = {}
    for line in RESULTS.read_bytes().splitlines():
        result = msgspec.json.decode(line, type=Result)
        if result.sources == present:
            found.setdefault(result.name, []).append(result)
    return {name: History(tuple(attempts)) for name, attempts in found.items()}


@dataclass(frozen=True)
class Published:
    """The published results: the digest of their sources, their date, and the history of each case."""

    sources: str
    date: str
    histories: dict[str, History]

    def of(self, cases: Sequence[Case]) -> dict[str, History]:
        """The histories of those of these cases that have run."""
        return {case.name: self.histories[case.name] for case in cases if case.name in self.histories}


def publish(cases: Sequence[Case]) -> bool:
    """Write the published results of these cases with the present sources. Returns False if there are none."""
    known = histories()
    chosen = {case.name: known[case.name] for case in cases if case.name in known}
    if chosen:
        date = datetime.fromtimestamp(RESULTS.stat().st_mtime, UTC).date()
        PUBLISHED.write_text(encoded(Published(digest(), f"{date}", chosen)))
    return bool(chosen)


def encoded(results: Published) -> str:
    """The text of the published results."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["case", "attempts", "seconds", "first error", "note"])
    for name, history in results.histories.items():
        attempts = " ".join(WORDS.get(each.error, "failed") for each in history.attempts)
        error = history.failures[0].error if history.failures else ""
        lines.writerow(
            [name, attempts, f"{history.last.seconds:.0f}", _short(error, 160), _short(history.last.note, 200)]
        )
    return f"# sources {results.sources}, {results.date}\n{text.getvalue()}"


def _short(text: str, length: int) -> str:
    """The text in one line. A text of at least `length` characters ends with an ellipsis, because it may be cut."""
    line = " ".join(text.split())
    return line if len(line) < length else f"{line[: length - 1]}…"


def decoded(text: str) -> Published:
    """The published results. All failed attempts of a case have the error of the first one. Raises ValueError."""
    head = HEAD.match(text)
    if not head:
        raise ValueError(f"the first line of the results is not like {HEAD.pattern!r}")
    errors = {word: error for error, word in WORDS.items()}
    found: dict[str, History] = {}
    for row in csv.DictReader(StringIO(text[head.end() :])):
        error, seconds = row["first error"] or "failed", float(row["seconds"])
        attempts = [errors.get(word, error) for word in row["attempts"].split()]
        found[row["case"]] = History(tuple(Result(row["case"], each, seconds, row["note"]) for each in attempts))
    return Published(head[1], head[2], found)


def blocks(cases: Sequence[Case], results: Published) -> dict[str, str]:
    """The generated blocks of docs/reliability.md."""
    known = results.of(cases)
    about = measured(results.sources, results.date)
    soak = known.get("T13/soak")
    return {
        "figures": f"{figures(cases, known)}\n\n{about}",
        "failed": failed(known),
        "soak": f"{about} {soak.last.note or soak.last.error}." if soak else "Not run with the published results.",
        "mutants": mutant_table(known),
    }


class Totals(NamedTuple):
    """Numbers of scripts and cases, of cases that have run, that passed, and that ever failed."""

    scripts: int
    cases: int
    run: int
    passed: int
    ever_failed: int


def totals(cases: Sequence[Case], known: dict[str, History]) -> Totals:
    """The numbers of these cases."""
    run = [known[case.name] for case in cases if case.name in known]
    return Totals(
        scripts=len({case.script for case in cases}),
        cases=len(cases),
        run=len(run),
        passed=sum(not history.last.error for history in run),
        ever_failed=sum(bool(history.failures) for history in run),
    )


def figures(cases: Sequence[Case], known: dict[str, History]) -> str:
    """The table of all campaigns. A script is a function with parameters; a case is a script with their values."""
    rows = [["Campaign", "Content", "Scripts", "Cases", "Run", "Passed", "Ever failed", "Median, s", "Longest, s"]]
    for short, about in CAMPAIGNS.items():
        mine = [case for case in cases if case.name.partition("/")[0] == short]
        times = [known[case.name].last.seconds for case in mine if case.name in known]
        durations = [f"{median(times):.0f}", f"{max(times):.0f}"] if times else ["–", "–"]
        rows.append([short, about, *map(str, totals(mine, known)), *durations])
    return table([*rows, ["", "all", *map(str, totals(cases, known)), "", ""]])


def failed(known: dict[str, History]) -> str:
    """Every case with a failed attempt, and its first failure."""
    found = {name: history for name, history in known.items() if history.failures}
    if not found:
        return "No attempt failed."
    rows = [f"{sum(len(history.failures) for history in found.values())} attempts failed:", ""]
    for name, history in found.items():
        attempts = f"{len(history.failures)} of {len(history.attempts)} attempts"
        error = _short(history.failures[0].error, 160).replace("`", "'")
        rows.append(f"* `{name}`: {attempts}, {'not passed' if history.last.error else 'then passed'}; `{error}`")
    return "\n".join(rows)


def mutant_table(known: dict[str, History]) -> str:
    """The defect of each mutant, the case that detects it, and the check that failed."""
    rows = [["Mutant", "Defect", "Detected by", "Failed check"]]
    for name, mutant in mutants().items():
        history = known.get(f"T14/{name}")
        if history is None:
            found = "not run"
        elif history.last.error:
            found = "**not detected**"
        else:
            found = _short(history.last.note, 100).replace("`", "'")
        rows.append([name, mutant.about, f"`{mutant.case}`", found])
    return table(rows)
