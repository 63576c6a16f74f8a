"""Run the corner tests: start real memcached processes at the limits of `spec.cache` and fill them.

There are four groups of cases:
  admission/*         the webhook and the API server agree about every spec of the corner table
  table/VERSION/*     memcached starts with every spec that admission accepts, and still replies after 5 s
  denied/VERSION/*    memcached does with every denied option what the list of these options says
  memory/VERSION/*    full caches stay within the minimum memory limit
All but the first need root, a memory control group and, on first use, debootstrap.
"""

import argparse
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from cluster.console.progress import Progress
from cluster.console.report import aligned
from cluster.errors import ClusterError
from cluster.public import releases
from corners import memory, report
from corners.cases import Case, Session, all_cases, problems
from corners.memory import Measurement
from corners.server import OPEN_FILES, raise_open_files
from integration.control_plane import ROOT

RESULTS: Final = ROOT / "build/corners/memory.json"
DOCUMENT: Final = ROOT / "docs/sizing-measurements.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected cases. Returns 1 if one fails, 2 if none matches or the machine cannot run them."""
    options = _parser().parse_args(arguments)
    if options.report:
        return _write_report()
    selected = [case for case in all_cases() if _matches(case, options.names, sample=options.sample)]
    if options.list:
        print("\n".join(case.name for case in selected))
        return 0
    if not selected:
        print(f"no case matches {' or '.join(options.names)}; --list prints all names", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(selected, allow_few_files=options.allow_few_files)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 2


def _run(selected: Sequence[Case], *, allow_few_files: bool) -> int:
    files = raise_open_files()
    left_out = [case.name for case in selected if case.open_files > files]
    possible = [case for case in selected if case.open_files <= files]
    progress = Progress(len(_groups(possible)))
    failed = _run_groups(_groups(possible), progress)
    if left_out:
        print(_not_started(left_out, files))
    passed = len(possible) - failed
    print(f"{passed} of {len(selected)} cases passed in {progress.elapsed():.0f} s.")
    return 1 if failed or (left_out and not allow_few_files) else 0


def _groups(cases: Iterable[Case]) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.group, []).append(case)
    return found


def _run_groups(groups: Mapping[str, Sequence[Case]], progress: Progress) -> int:
    """Run the groups; returns the number of failed cases."""
    failed = 0
    with ExitStack() as stack:
        session, prepared = Session(stack), False
        for group, cases in groups.items():
            if group != "admission" and not prepared:
                session.prepare({each.split("/")[1] for each in groups if "/" in each})
                prepared = True
            with progress.step(f"{group}: {len(cases)} cases") as notes:
                failures = _problems(session, cases, progress)
                notes.append(f"{len(failures)} failed" if failures else "passed")
            failed += len(failures)
        if session.measured:
            print(aligned(report.rows(session.measured)))
    return failed


def _problems(session: Session, cases: Sequence[Case], progress: Progress) -> list[str]:
    """Run a group; returns the names of the failed cases."""
    found: list[str] = []
    started = time.monotonic()
    for case, problem in zip(cases, problems(session, cases), strict=True):
        if problem:
            found.append(case.name)
            progress.say(f"FAILED {case.name}: {problem}")
        elif case.group.startswith("memory"):
            progress.say(f"        {case.name}: {time.monotonic() - started:.0f} s")
        if case.group.startswith("memory"):
            _keep(session.measured[-1:])
        started = time.monotonic()
    return found


def _not_started(names: Sequence[str], files: int) -> str:
    return "\n  ".join(
        [
            f"Not started, because a process may open only {files} files here and this limit cannot be raised:",
            *names,
            f"Raise the hard limit (RLIMIT_NOFILE), for example with `docker run --ulimit nofile={OPEN_FILES[1]}`,",
            "or accept this with --allow-few-files.",
        ]
    )


def _keep(measured: Sequence[Measurement]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(report.merged(_kept(), measured))))


def _kept() -> list[Measurement]:
    """The measurements of earlier runs."""
    with suppress(FileNotFoundError):
        return msgspec.json.decode(RESULTS.read_bytes(), type=list[Measurement])
    return []


def _write_report() -> int:
    found = _kept()
    if not found:
        print(f"{RESULTS} has no measurements: run `python -m corners 'memory/*'` first", file=sys.stderr)
        return 2
    cases = (case for version in releases.VERSIONS for case in memory.cases(version))
    order = [(case.version, case.settings, case.load.name) for case in cases]
    report.write(DOCUMENT, report.sorted_by(order, found))
    print(f"The table of {DOCUMENT.relative_to(ROOT)} was updated.", file=sys.stderr)
    return 0


def _matches(case: Case, names: Sequence[str], *, sample: bool) -> bool:
    return (case.in_gate or not sample) and (not names or any(fnmatchcase(case.name, name) for name in names))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m corners", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="name of a case, or a pattern such as 'memory/1.6.38/*' (default: all)"
    )
    parser.add_argument("--sample", action="store_true", help="run only the cases of the gate, in less than a minute")
    parser.add_argument(
        "--allow-few-files",
        action="store_true",
        help="do not fail if specs are not started because the hard limit of open files is below their maxConnections",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cases and exit")
    parser.add_argument(
        "--report", action="store_true", help="run nothing; write the last measurements to docs/sizing-measurements.md"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
