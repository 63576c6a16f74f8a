"""Results of cases: every attempt, kept between runs, published in compact form, and their figures in the docs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from faults.campaigns.mutants import mutants
from faults.case import Case
from faults.process import ROOT
from faults.runner import INTERRUPTED, Result
from faults.sources import digest

RESULTS = ROOT / "build/faults/results.jsonl"
"""One line per attempt, in their order, of all sources. `make clean` removes it."""
PUBLISHED = ROOT / "docs/reliability-results.csv"
"""The published results, one line per case: name, each attempt (ok, failed or interrupted), seconds of the last one."""
DOCUMENT = ROOT / "docs/reliability.md"
WORDS = {"": "ok", INTERRUPTED: INTERRUPTED}
"""How the published results call an attempt with this error; every other one has failed."""
CAMPAIGNS = {
    "T1": "SIGKILL before, during and after every write, and around a deletion",
    "T2": "a write is executed, its reply is lost",
    "T3": "a write is rejected once, 3 times, 20 times, for 60 s",
    "T4": "lists and watches fail",
    "T5": "stale lists, late events, an object recreated while its watch is delayed",
    "T6": "the spec changes while the operator is down or receives no events",
    "T7": "another client changes, deletes or adopts a child",
    "T8": "every field of both kinds, from the CRDs",
    "T9": "admission fails",
    "T10": "certificate files change, and the objects of the issuer",
    "T11": "two operators at the same time",
    "T12": "namespace, quota, Pod Security, CRD, permissions",
    "T13": "soak",
    "T14": "mutants of the operator, each detected by a case",
    "T15": "faults of memcached and of clients, as the agent sees them",
    "T16": "updates of pods in place and one at a time, with a simulated kubelet",
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


def write(cases: Sequence[Case]) -> None:
    """Write the published results, and the figures, mutants and cases between the marks of the document."""
    present = {case.name for case in cases}
    known = {name: history for name, history in histories().items() if name in present}
    PUBLISHED.write_text(published(known))
    text = DOCUMENT.read_text()
    parts = {
        "figures": figures(cases, known),
        "failed": failed(known),
        "mutants": mutant_table(known),
        "cases": names(cases),
    }
    for mark, body in parts.items():
        text = re.sub(
            rf"(<!-- {mark} -->\n).*?(<!-- end -->)",
            lambda found, body=body: found[1] + body + found[2],
            text,
            flags=re.DOTALL,
        )
    DOCUMENT.write_text(text)


def published(known: dict[str, History]) -> str:
    """The results in compact form. The header names the sources."""
    lines = [f"case,attempts with sources {digest()},seconds"]
    for name, history in known.items():
        attempts = " ".join(WORDS.get(each.error, "failed") for each in history.attempts)
        lines.append(f"{name},{attempts},{history.last.seconds:.0f}")
    return "\n".join([*lines, ""])


def figures(cases: Sequence[Case], known: dict[str, History]) -> str:
    """The table of all campaigns. A script is a function with parameters; a case is a script with their values."""
    rows = [
        "| | Campaign | Scripts | Cases | Run | Passed | Ever failed | Median, s | Longest, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    total = [0] * 5
    for short, about in CAMPAIGNS.items():
        mine = [case for case in cases if case.name.partition("/")[0] == short]
        run = [known[case.name] for case in mine if case.name in known]
        passed = sum(not history.last.error for history in run)
        ever_failed = sum(bool(history.failures) for history in run)
        times = [history.last.seconds for history in run] or [0.0]
        counts = [len({case.script for case in mine}), len(mine), len(run), passed, ever_failed]
        rows.append(f"| {short} | {about} | {_cells(counts)} | {median(times):.0f} | {max(times):.0f} |")
        total = [sum(pair) for pair in zip(total, counts, strict=True)]
    sources = f"All figures are of attempts with these sources of the product (digest `{digest()}`)."
    return "\n".join([*rows, f"| | all | {_cells(total)} | | |", "", sources, ""])


def _cells(counts: Iterable[int]) -> str:
    return " | ".join(map(str, counts))


def failed(known: dict[str, History]) -> str:
    """Every case with a failed attempt, and its first failure."""
    found = {name: history for name, history in known.items() if history.failures}
    if not found:
        return "No attempt with these sources failed.\n"
    rows = [f"{sum(len(history.failures) for history in found.values())} attempts with these sources failed:", ""]
    for name, history in found.items():
        attempts = f"{len(history.failures)} of {len(history.attempts)} attempts"
        error = " ".join(history.failures[0].error.split())[:160].replace("`", "'")
        rows.append(f"* `{name}`: {attempts}, {'not passed' if history.last.error else 'then passed'}; `{error}`")
    return "\n".join([*rows, ""])


def mutant_table(known: dict[str, History]) -> str:
    """The defect of each mutant, the case that detects it, and the check that failed."""
    rows = ["| Mutant | Defect | Detected by | Failed check |", "|---|---|---|---|"]
    for name, mutant in mutants().items():
        history = known.get(f"T14/{name}")
        if history is None:
            found = "not run"
        elif history.last.error:
            found = "**not detected**"
        else:
            found = " ".join(history.last.note.split())[:100].replace("|", "\\|").replace("`", "'")
        rows.append(f"| {name} | {mutant.about} | `{mutant.case}` | {found} |")
    return "\n".join([*rows, ""])


def names(cases: Sequence[Case]) -> str:
    """The names of all cases. Names that differ only in their last part share a line."""
    groups: dict[str, list[str]] = {}
    for case in cases:
        head, _, tail = case.name.rpartition("/")
        groups.setdefault(head, []).append(tail)
    return "\n".join(
        [*(f"* `{head}/` {', '.join(f'`{tail}`' for tail in tails)}" for head, tails in groups.items()), ""]
    )
