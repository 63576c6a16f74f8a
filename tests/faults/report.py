"""Results of cases, kept between runs, and their figures in docs/reliability.md."""

import re
from collections.abc import Sequence
from statistics import median

import msgspec

from faults.campaigns.mutants import mutants
from faults.case import Case
from faults.process import ROOT
from faults.runner import Result

RESULTS = ROOT / "build/faults/results.jsonl"
"""One line per result; the last result of a case counts."""
DOCUMENT = ROOT / "docs/reliability.md"
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
    "T10": "certificate files change",
    "T11": "two operators at the same time",
    "T12": "namespace, quota, Pod Security, CRD, permissions",
    "T13": "soak",
    "T14": "mutants of the operator, each detected by a case",
    "fuzz": "random objects and requests",
}


def keep(result: Result) -> None:
    """Append a result."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("ab") as file:
        file.write(msgspec.json.encode(result) + b"\n")


def known() -> dict[str, Result]:
    """The last result of each case."""
    if not RESULTS.exists():
        return {}
    found = (msgspec.json.decode(line, type=Result) for line in RESULTS.read_bytes().splitlines())
    return {result.name: result for result in found}


def write(cases: Sequence[Case]) -> None:
    """Write the figures and the list of cases between the marks of the document."""
    text = DOCUMENT.read_text()
    for mark, body in (("figures", _figures(cases)), ("mutants", _mutants()), ("cases", _names(cases))):
        text = re.sub(
            rf"(<!-- {mark} -->\n).*?(<!-- end -->)",
            lambda found, body=body: found[1] + body + found[2],
            text,
            flags=re.DOTALL,
        )
    DOCUMENT.write_text(text)


def _figures(cases: Sequence[Case]) -> str:
    results = known()
    rows = ["| | Campaign | Cases | Run | Passed | Median, s | Longest, s |", "|---|---|---|---|---|---|---|"]
    total = [0, 0, 0]
    for short, about in CAMPAIGNS.items():
        mine = [case.name for case in cases if case.name.partition("/")[0] == short]
        run = [results[name] for name in mine if name in results]
        passed = [result for result in run if not result.error]
        if not mine:
            continue
        times = [result.seconds for result in run] or [0.0]
        rows.append(
            f"| {short} | {about} | {len(mine)} | {len(run)} | {len(passed)} | {median(times):.0f} | {max(times):.0f} |"
        )
        total = [sum(pair) for pair in zip(total, (len(mine), len(run), len(passed)), strict=True)]
    return "\n".join([*rows, f"| | all | {total[0]} | {total[1]} | {total[2]} | | |", ""])


def _mutants() -> str:
    """The defect of each mutant, and the case that detects it."""
    results = known()
    rows = ["| Mutant | Defect | Detected by | Detected |", "|---|---|---|---|"]
    for name, mutant in mutants().items():
        result = results.get(f"T14/{name}")
        caught = "not run" if result is None else "no" if result.error else "yes"
        rows.append(f"| {name} | {mutant.about} | `{mutant.case}` | {caught} |")
    return "\n".join([*rows, ""])


def _names(cases: Sequence[Case]) -> str:
    """The names of all cases. Names that differ only in their last part share a line."""
    groups: dict[str, list[str]] = {}
    for case in cases:
        head, _, tail = case.name.rpartition("/")
        groups.setdefault(head, []).append(tail)
    return "\n".join(
        [*(f"* `{head}/` {', '.join(f'`{tail}`' for tail in tails)}" for head, tails in groups.items()), ""]
    )
