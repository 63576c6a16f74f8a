"""Compare the operator of this checkout with that of another commit: storms and scale waves, in turn on one plane."""

import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bench import load, rounds
from bench.environment import only_garbage_collector, open_environment
from bench.rounds import Figures
from bench.scenarios import Report
from integration.control_plane import ROOT, ControlPlane

FOLDERS = ("operator", "api", "agent")
"""The folders of a checkout that the controller imports."""
FIGURES = (
    *("children accepted, s", "status current, s", "CPU per object, ms"),
    *("reconciles per object", "RSS idle, MiB", "RSS after, MiB"),
)
"""Of the storm; those of the scale wave are in WAVE."""
WAVE = ("status current, s", "CPU per object, ms", "reconciles per object")

Pair = tuple[Figures, Figures]
"""The figures of this checkout and of the other one, from the same round."""


@contextmanager
def checkout(commit: str) -> Generator[Path]:
    """The files of a commit, in a temporary folder. Raises CalledProcessError if git does not know it."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        archive = subprocess.run(["git", "archive", commit, *FOLDERS], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


async def one_round(plane: ControlPlane, count: int, report: Report, trees: Sequence[Path]) -> list[Figures]:
    """A storm and a scale wave with the controller of each checkout, in this order."""
    found: list[Figures] = []
    async with open_environment(plane) as env:
        with only_garbage_collector(env):
            for tree in trees:
                report(f"{tree}: storm, then scale wave")
                sources = [str(tree / folder) for folder in FOLDERS]
                async with rounds.operator(env, load.MINIMAL, sources) as worker:
                    namespace = await env.namespace("storm")
                    figures = await rounds.storm(env, worker, count, namespace)
                    figures["wave"] = await rounds.change(env, worker, namespace, count, {"size": 2})
                found.append(figures)
                await env.clean_up()
    return found


def table(pairs: Sequence[Pair]) -> str:
    """The medians of all rounds, and the median of the ratios of this checkout to the other one."""
    waves = [(ours["wave"], theirs["wave"]) for ours, theirs in pairs]
    lines = [_line(name, name, pairs) for name in FIGURES]
    lines += [_line(f"scale wave: {name}", name, waves) for name in WAVE]
    return "\n".join([f"{'figure':36} {'this':>8} {'other':>8} {'ratio':>7}", *lines])


def _line(title: str, name: str, pairs: Sequence[Pair]) -> str:
    ours, theirs = [each[name] for each, _ in pairs], [each[name] for _, each in pairs]
    ratio = f"{median(one / two for one, two in zip(ours, theirs, strict=True)):6.2f} ×" if all(theirs) else f"{'–':>8}"
    return f"{title:36} {median(ours):8.2f} {median(theirs):8.2f} {ratio}"
