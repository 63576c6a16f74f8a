"""The command line: `python -m suites SUITE …`."""

import argparse
import os
import shutil
import time
from collections.abc import Sequence

from cluster.console.commands import complete
from project.environment import end_on_signals
from project.images import Images
from suites import results, session
from suites.environment import Setup, left_out, notes
from suites.session import Options, Session
from suites.table import GROUPS, SUITES, Suite, chosen

EPILOG = f"""\
Suites:
{"".join(f"  {each.name:<19} {each.content}{chr(10)}" for each in SUITES.values())}
Groups:
{"".join(f"  {name:<19} {', '.join(names)}{chr(10)}" for name, names in GROUPS.items())}
A suite stops after {results.MAX_FAILURES} failures; the other suites still run. At most {session.MAX_AGAIN}
failed tests of a suite run once more, alone: one that passes then is counted as flaky. Fault cases
and tests marked `race` run once, and so do all tests with --args or --times.

environment:
  TESTS_STARTED   seconds since 1970 at which the time of --minutes begins (default: now)
  TESTS_COMPLETE  if it is not empty, a suite that cannot run here is a failure
"""
USUAL_MINUTES = {"test": 6, "all": 50}
"""On 2 processors, with the programs built."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run suites; returns the exit code: 0, 1 if a test failed, 2 for wrong usage, 130 on Ctrl-C."""
    end_on_signals()
    return complete(lambda: run(parser().parse_args(arguments)), "run it again; every command can be repeated")


def parser() -> argparse.ArgumentParser:
    """All arguments."""
    top = argparse.ArgumentParser(
        "python -m suites",
        description="Run test suites, and sum up their results.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("names", nargs="+", choices=[*SUITES, *GROUPS], metavar="NAME", help="suites or groups, see below")
    top.add_argument("--plan", action="store_true", help="only print what would run, and what is left out")
    top.add_argument("--add", action="store_true", help="add to the results of the last command")
    top.add_argument("--workers", default="4", metavar="N", help="parallel tests, a number or auto (%(default)s)")
    top.add_argument("--args", default="", metavar="WORDS", help="more arguments for pytest, as one word")
    top.add_argument("--coverage", action="store_true", help="measure the coverage and check its thresholds")
    top.add_argument("--times", type=int, default=1, metavar="N", help="run each suite so many times (%(default)s)")
    top.add_argument("--flaky", choices=("report", "fail"), default="report", help="of a flaky test (%(default)s)")
    top.add_argument(
        "--minutes", type=float, default=75.0, metavar="N", help="no suite starts after so many minutes (%(default)g)"
    )
    top.add_argument("--image", default="", help="the operator's image; localhost/… stays on this machine")
    top.add_argument("--agent-image", default="", help="the image of the agents in the pods of caches")
    top.add_argument("--overlay", default="config/default", metavar="DIRECTORY", help="kustomization (%(default)s)")
    top.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    return top


def run(options: argparse.Namespace) -> int:
    """Run the suites that the options select."""
    suites = chosen(options.names)
    missing = left_out(suites, options.names)
    suites = [suite for suite in suites if suite.name not in missing]
    if options.plan:
        print(plan(options.names, suites, missing), flush=True)
        return 0
    words = session.split(options.args)
    suites = session.matching(suites, words)
    setup = Setup(Images(options.image, options.agent_image), options.build_arg, options.overlay)
    chosen_options = Options(
        options.workers,
        words,
        options.coverage,
        options.times,
        options.flaky == "fail",
        float(os.environ.get("TESTS_STARTED") or time.time()) + options.minutes * 60,
    )
    outcomes, not_run = _earlier(add=options.add)
    if os.environ.get("TESTS_COMPLETE"):
        not_run, missing = not_run | missing, {}
    return Session(setup, chosen_options, missing, session.DIRECTORY, outcomes=outcomes, missing=not_run).run(suites)


def plan(names: Sequence[str], suites: Sequence[Suite], missing: dict[str, str]) -> str:
    """What will run and what is left out, for the user who has just called the command."""
    width = max(len(suite.name) for suite in suites)
    minutes = [str(USUAL_MINUTES[name]) for name in names if name in USUAL_MINUTES]
    duration = f", about {minutes[0]} minutes on 2 processors" if minutes and not missing else ""
    lines = [f"{len(suites)} suites{duration}; the first run builds programs, 10 to 25 minutes more:"]
    lines += [f"  {suite.name:<{width}}  {suite.content}" for suite in suites]
    return "\n".join([*lines, *notes(missing)])


def _earlier(*, add: bool) -> tuple[list[results.Outcome], dict[str, str]]:
    """The results of the last command, to add to; otherwise its files are removed."""
    if add:
        return results.stored(session.DIRECTORY / session.OUTCOMES)
    shutil.rmtree(session.DIRECTORY, ignore_errors=True)
    return [], {}
