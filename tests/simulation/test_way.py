"""The way of one change of `spec.size` through the code: how much of it runs, and how often an object is reconciled."""

import asyncio
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import memcached_api
import memcached_operator
from memcached_operator import metrics
from memcached_operator.memcached.controller import MEMCACHEDS
from simulation.test_proxies import IMAGE, World, run

SETTLED: Final = 90.0
"""Seconds after which the controller writes nothing more about a new object."""
FOLDERS: Final = tuple(str(Path(each.__path__[0])) for each in (memcached_api, memcached_operator))


@dataclass
class Way:
    """What has run."""

    files: set[str] = field(default_factory=set[str])
    functions: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    calls: int = 0

    def called(self, frame: FrameType, event: str, _: object) -> None:
        """Count a call of a function of the product."""
        code = frame.f_code
        is_named = not code.co_name.startswith("<")  # no comprehension and no lambda
        if event == "call" and is_named and code.co_filename.startswith(FOLDERS):
            self.files.add(code.co_filename)
            self.functions.add((code.co_filename, code.co_qualname))
            self.calls += 1


@contextmanager
def followed() -> Generator[Way]:
    """Count what runs meanwhile."""
    way = Way()
    sys.setprofile(way.called)
    try:
        yield way
    finally:
        sys.setprofile(None)


def reconciles() -> float:
    """The number of reconciles of Memcacheds so far."""
    samples = (sample for metric in metrics.RECONCILES.collect() for sample in metric.samples)
    return sum(
        each.value for each in samples if each.name.endswith("_total") and each.labels["controller"] == "memcached"
    )


@pytest.mark.parametrize(("identity", "most"), [("Pooled", 3), ("Stable", 3)])
def test_one_change_of_the_size_needs_few_reconciles(
    identity: str, most: int, record_property: Callable[[str, object], None]
) -> None:
    found: dict[str, Any] = {}

    async def scenario(world: World) -> None:
        await world.create(MEMCACHEDS, "cache", identity=identity, size=3, image=IMAGE)
        annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}  # of kubectl apply; it is not kept
        await world.sandbox.merge(world.key(MEMCACHEDS, "cache"), {"metadata": {"annotations": annotations}})
        await asyncio.sleep(SETTLED)
        before = reconciles()
        with followed() as way:
            await world.change(MEMCACHEDS, "cache", size=4)
            await asyncio.sleep(SETTLED)
        assert world.get(MEMCACHEDS, "cache")["status"]["readyReplicas"] == 4
        found.update(
            files=len(way.files), functions=len(way.functions), calls=way.calls, reconciles=int(reconciles() - before)
        )

    run(scenario)
    for name, number in found.items():
        record_property(f"{identity} {name}", number)
    assert found["reconciles"] <= most
