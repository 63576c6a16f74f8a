"""The walks that hypothesis draws, and shrinks to the smallest one that fails."""

from dataclasses import dataclass
from typing import Final, Protocol

from hypothesis import strategies as st

from faults.workloads import IMAGE, OTHER_IMAGE
from simulation.walks import actions
from simulation.walks.disturbances import (
    CREATION_FAULTS,
    FAULTS,
    INTERRUPTIONS,
    PROCESSES,
    READS,
    WATCH_FAULTS,
    WATCHED,
    WRITES,
    Compact,
    Empty,
    Hold,
    Inject,
    Interrupt,
    Lease,
    Pass,
    Process,
    Wait,
)
from simulation.walks.specs import OPTIONS, OWNERS, Spec
from simulation.walks.world import World


class Step(Protocol):
    """A step of a walk."""

    async def __call__(self, world: World) -> None:
        """Carry it out."""
        ...


MAX_STEPS: Final = (4, 8, 16, 24)
"""The maximum numbers of steps. Hypothesis prefers short lists, so at least half of them are drawn."""
NO_SYNC: Final = 864_000.0
"""A sync period in seconds that is longer than any walk: events and retries must repair everything."""


@dataclass(frozen=True)
class Walk:
    """A walk. `operators`: their number. `resolved`: in the end, other clients remove their finalizers and objects.

    `sync_period`, `max_retry_delay`: seconds.
    """

    seed: int
    operators: int
    sync_period: float
    max_retry_delay: float
    resolved: bool
    steps: tuple[Step, ...]


_SMALL: Final = st.integers(0, 30)
_NAMES: Final = st.sampled_from(("wk-a", "wk-s", "wk-p", "wk-a", "wk-s", *OWNERS))
_SPECS: Final = st.builds(
    Spec, st.integers(1, 3), st.sampled_from(tuple(OPTIONS)), st.sampled_from((IMAGE, OTHER_IMAGE))
)
_PUTS: Final = st.builds(actions.Put, _NAMES, _SPECS)
_WAITS: Final = st.builds(Wait, st.sampled_from((0.01, 0.2, 1, 3, 12, 40, 150, 700, 4000)))
PROPAGATIONS: Final = ("Background", "Foreground", "Orphan", actions.HELD)
_AMOUNTS: Final = st.one_of(
    st.tuples(st.sampled_from((1, 2, 3, 5, 20)), st.none()),
    st.tuples(st.none(), st.sampled_from((0.5, 5.0, 20.0, 60.0))),
)
_WATCHED: Final = st.sampled_from(("*", *WATCHED))


@st.composite
def _faults(draw: st.DrawFn) -> Step:
    what = draw(st.sampled_from((*WRITES, *READS, "watch")))
    if what == "watch":
        what, faults = f"watch {draw(_WATCHED)}", tuple(WATCH_FAULTS)
    else:
        faults = (*FAULTS, *(CREATION_FAULTS if what.startswith("create") else ()))
    times, seconds = draw(_AMOUNTS)
    return Inject(what, draw(st.sampled_from(faults)), times, seconds, draw(st.integers(0, 3)))


_STEPS: Final[tuple[tuple[int, st.SearchStrategy[Step]], ...]] = (
    (10, _WAITS),
    (9, _PUTS),
    (3, st.builds(actions.Scale, _NAMES, st.integers(1, 3))),
    (3, st.builds(actions.Delete, _NAMES, st.sampled_from(PROPAGATIONS))),
    (8, st.builds(actions.Drift, st.sampled_from(actions.DRIFTS), _SMALL)),
    (1, st.builds(actions.Drift, st.just("deleted"), _SMALL, st.sampled_from(("Foreground", "Orphan")))),
    (1, st.builds(actions.Drift, st.just("scaled"), _SMALL, st.sampled_from(("1", "5")))),
    (2, st.builds(actions.Foreign, _NAMES, _SMALL)),
    (1, st.builds(actions.Budget, _NAMES)),
    (3, st.builds(actions.Pod, _SMALL, st.booleans())),
    (1, st.builds(actions.Release, st.booleans())),
    (12, _faults()),
    (2, st.builds(Interrupt, _WATCHED, st.sampled_from(tuple(INTERRUPTIONS)), st.booleans())),
    (3, st.builds(Hold, st.lists(st.sampled_from(WATCHED), min_size=1, max_size=3).map(tuple))),
    (2, st.builds(Pass, st.booleans())),
    (2, st.builds(Compact)),
    (1, st.builds(Empty, st.sampled_from(WATCHED))),
    (4, st.builds(Process, st.integers(0, 1), st.sampled_from(PROCESSES))),
    (1, st.builds(Lease, st.booleans())),
)
"""The steps, each with its weight: `one_of` would give each the same one."""
_WEIGHTED: Final = tuple(number for number, (weight, _) in enumerate(_STEPS) for _ in range(weight))


@st.composite
def _steps(draw: st.DrawFn) -> Step:
    return draw(_STEPS[draw(st.sampled_from(_WEIGHTED))][1])


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """Random walks. Each begins with an object, which is usually ready before the other steps."""
    most = draw(st.sampled_from(MAX_STEPS))
    first, pause = draw(_PUTS), Wait(draw(st.sampled_from((6.0, 6.0, 1.5, 0.0))))
    return Walk(
        seed=draw(st.integers(0, 99)),
        operators=draw(st.sampled_from((1, 1, 2))),
        sync_period=draw(st.sampled_from((NO_SYNC, NO_SYNC, 5.0))),
        max_retry_delay=draw(st.sampled_from((2.0, 30.0))),
        resolved=draw(st.booleans()),
        steps=(first, pause, *draw(st.lists(_steps(), min_size=most // 2, max_size=most))),
    )
