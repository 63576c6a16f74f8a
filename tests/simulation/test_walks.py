"""Random walks of the whole operator: others for each change of its sources, and many nightly."""

import os
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import memcached_api
import memcached_operator
from simulation.walks.actions import Delete, Drift, Pause, Put, Refer, Replace, Scale
from simulation.walks.disturbances import PROXIES, Hold, Inject, Process, Unlisted, Wait
from simulation.walks.specs import PAUSED, Spec
from simulation.walks.strategies import NO_SYNC, Step, Walk, walks
from simulation.walks.trace import EXAMPLE
from simulation.walks.walking import run_walk
from support import programs

SECONDS: Final = float(os.environ.get("WALKS_SECONDS", "100"))
"""The time after which no other walks begin. The nightly run has more."""
SOURCES: Final = [Path(each.__path__[0]) for each in (memcached_api, memcached_operator)]
GIVEN: Final = os.environ.get("WALKS_SEED", "")
SEED: Final = int(
    GIVEN or crc32(b"".join(path.read_bytes() for each in SOURCES for path in sorted(each.rglob("*.py"))))
)
"""Of the first walks. With the same sources, a gate has the same ones: it fails again, or does not fail later."""
SEEDS: Final = 20
"""Those of a gate: 200 walks take less than SECONDS on 2 cores."""
WALKS: Final = 10
"""Walks with one seed. Each seed is tried anew, so that walks are less alike than those which hypothesis derives."""


IN_PLACE: Final[list[int]] = []
"""The number of changes of pods in each walk."""


@settings(
    max_examples=WALKS,
    deadline=None,
    database=None,
    derandomize=False,
    # The smallest walk that fails is found only when a failure is repeated: it takes up to five minutes.
    phases=(Phase.generate, Phase.shrink) if GIVEN else (Phase.generate,),
    # A walk takes up to a second, and the strategies draw dozens of values for it.
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example),
)
@given(walks())
def _check(walk: Walk) -> None:
    """After a walk, everything is as users want it."""
    IN_PLACE.append(sum(" patch pods " in each for each in run_walk(walk)))


@pytest.mark.long(70)
def test_walks(record_property: Callable[[str, object], None]) -> None:
    """Random walks, as many as the time allows."""
    record_property("seed", SEED)
    end, walked = time.perf_counter() + SECONDS, 0
    for number in count(SEED) if GIVEN else range(SEED, SEED + SEEDS):
        try:
            seed(number)(_check)()
        except AssertionError as error:
            error.add_note(
                f"`WALKS_SEED={number} make test-simulation ARGS=tests/simulation/test_walks.py` repeats it."
            )
            raise
        walked += WALKS
        if time.perf_counter() > end:
            break
    record_property("walks", walked)
    record_property("changes of pods in place", sum(IN_PLACE))
    assert any(IN_PLACE), "no walk updates a pod in place"


def _walk(*steps: Step, operators: int = 1, sync_period: float = NO_SYNC, resolved: bool = True) -> Walk:
    """A walk of one or two operators."""
    return Walk(0, operators, sync_period, max_retry_delay=2.0, resolved=resolved, steps=steps)


FOUND: Final[dict[str, Walk]] = {
    "missing pods of a Deployment that another owner has taken meanwhile": _walk(
        Put("wk-a", Spec(3, PAUSED)),
        Wait(6),
        Hold(("deployments", "pods")),
        Drift("scaled", 0),
        Drift("adopted", 0),
        Wait(150),
    ),
    "pods whose Deployment is created again during a pause": _walk(
        Put("wk-a", Spec(3)),
        Wait(6),
        Pause("wk-a", paused=True),
        Wait(1),
        Drift("deleted", 0, "Orphan"),
        Wait(1),
    ),
    "slots of proxies whose pods no event has reported yet": _walk(
        Put("wk-s", Spec(3)), Put("wk-x", Spec(2)), Wait(1), Hold(("pods",)), Wait(20), Scale("wk-s", 2), Wait(1)
    ),
    "slots of a deleted proxy whose pods no event has reported yet": _walk(
        *(Put("wk-s", Spec(3)), Put("wk-x", Spec(2)), Wait(1), Hold(("pods",)), Wait(20)),
        *(Delete("wk-x", "Background"), Scale("wk-s", 1), Wait(3)),
    ),
    "slots of a proxy that is created again while the lists of proxies fail": _walk(
        *(Put("wk-s", Spec(3)), Put("wk-x", Spec(2)), Wait(60), Unlisted(PROXIES, "404", None, 40.0, starts=True)),
        *(Replace("wk-x", Spec(1)), Scale("wk-s", 1), Wait(90)),
    ),
    "slots of proxies that get another number of slots and the first one again, while no event reports a pod": _walk(
        *(Put("wk-s", Spec(3)), Put("wk-x", Spec(2)), Wait(20), Hold(("pods",))),
        *(Scale("wk-s", 5), Wait(20), Scale("wk-s", 3), Wait(8)),
    ),
    "the Deployment of proxies is hidden while their Memcached is missing": _walk(
        *(Put("wk-s", Spec(3)), Put("wk-x", Spec(2)), Wait(20)),
        *(Drift("hidden", 1), Refer("wk-x", "wk-z"), Wait(5), Scale("wk-s", 2), Wait(5)),
        resolved=False,
    ),
    "the port during a pause, while the Deployment is hidden and is being deleted": _walk(
        Put("wk-a", Spec(3, "port")),
        Wait(40),
        Pause("wk-a", paused=True),
        Drift("finalized", 0),
        Drift("hidden", 0),
        sync_period=5.0,
        resolved=False,
    ),
    "a Service that is not wanted any more, and that a finalizer holds": _walk(
        *(Put("wk-q", Spec(1, "port")), Wait(6), Drift("finalized", 1), Put("wk-q", Spec(1)), Wait(6)), resolved=False
    ),
    "the last write of a leader arrives after its end": _walk(
        Put("wk-a", Spec(3)),
        Wait(6),
        Inject("apply *", "late", None, 0.5, 0),
        Put("wk-a", Spec(3, "port")),
        Wait(0.1),
        Process(1, "terminated"),
        operators=2,
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_walk_that_has_failed(name: str) -> None:
    run_walk(FOUND[name])


def test_equal_seeds_have_equal_traces() -> None:
    """A walk is the same when it is repeated, and in another process, whose sets have another order."""
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "simulation.walks.trace"]
    other = programs.output(command, env=environment)
    trace = run_walk(EXAMPLE)
    assert run_walk(EXAMPLE) == trace
    assert other.splitlines() == trace
