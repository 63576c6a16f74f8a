"""One workload against several memcacheds: the one whose curve is predicted, and some that have more or less memory."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from cluster.public import releases
from corners import server
from insight.load import Load, Target
from insight.watch import Watch
from insight.workloads import Workload

LARGER: Final = (1.25, 1.5, 2.0)
SMALLER: Final = (0.375, 0.5, 0.625)
"""Sizes, relative to the memory of the workload. The curve has one point of less memory, mostly between these."""


class Plan(msgspec.Struct, frozen=True):
    """How many gets fill the memcacheds, as fast as they can, then let their lists settle, then are measured.

    `rate`: gets per second after the first. At 3,000, the items that are evicted next are about 30 s old; at the full
    speed they would be 2 s old, and memcached, whose clock has seconds, would keep other shares of young items.
    """

    fill: int = 300_000
    settle: int = 450_000
    measure: int = 900_000
    rate: float = 3000.0

    @property
    def gets(self) -> int:
        """All gets."""
        return self.fill + self.settle + self.measure

    def scaled(self, scale: float) -> "Plan":
        """The plan with so many times the gets."""
        fill, settle, measure = (round(part * scale) for part in (self.fill, self.settle, self.measure))
        return Plan(fill, settle, measure, self.rate)


class Outcome(msgspec.Struct, frozen=True):
    """What a workload showed. Ratios are from 0 to 1, by size relative to the memory of the workload."""

    workload: str
    memory: int
    quality: str
    lines: int
    sample: float
    seconds: float
    measured: dict[str, float]
    predicted: dict[str, float]
    cliffs: list[str]


def run(workload: Workload, version: str, base_port: int, plan: Plan) -> Outcome:
    """Measure a workload on memcached of this version; the ports from `base_port` on must be free."""
    keys = workload.keys(plan.gets)
    factors = (1.0, *LARGER, *SMALLER)
    ports = range(base_port, base_port + len(factors))
    sizes = [round(workload.memory * factor) for factor in factors]
    with _memcacheds(releases.ensure(version), ports, sizes) as targets:
        load = Load(workload, keys, targets)
        load.run(0, plan.fill)
        load.run(plan.fill, plan.fill + plan.settle, plan.rate)
        for target in targets:
            target.reset()
        watch = Watch(ports[0])
        load.run(plan.fill + plan.settle, plan.gets, plan.rate)
        result = watch.result()
    points = [*result.larger, *([result.smaller] if result.smaller else [])]
    return Outcome(
        workload=workload.name,
        memory=workload.memory,
        quality=result.quality,
        lines=watch.window.lines,
        sample=watch.window.threshold / 2**32,
        seconds=result.seconds,
        measured={_name(factor): each.hits / each.gets for factor, each in zip(factors, targets, strict=True)},
        predicted={_name(point.memory): point.hit_ratio for point in points},
        cliffs=[_name(point.memory) for point in points if point.cliff],
    )


def _name(factor: float) -> str:
    return f"{factor:.4g}"


@contextmanager
def _memcacheds(root: Path, ports: Sequence[int], sizes: Sequence[int]) -> Generator[list[Target]]:
    """A connection to each of several memcacheds with these sizes in MiB."""
    with ExitStack() as stack:
        targets: list[Target] = []
        for port, size in zip(ports, sizes, strict=True):
            words = [releases.PROGRAM, "-l", "127.0.0.1", "-p", str(port), "-t", "2", "-m", str(size)]
            found = stack.enter_context(server.started(root, words, port))
            if problem := found.problem():
                raise OSError(problem)
            targets.append(Target(port))
            stack.callback(targets[-1].close)
        yield targets
