"""The walks that hypothesis draws, and shrinks to the smallest one that fails."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from hypothesis import strategies as st

from faults.workloads import IMAGE, OTHER_IMAGE
from simulation.walks import actions, updates
from simulation.walks.disturbances import (
    CREATION_FAULTS,
    FAULTS,
    INTERRUPTIONS,
    LIST_FAULTS,
    LISTED,
    PROCESSES,
    PROXIES,
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
    Unlisted,
    Wait,
)
from simulation.walks.specs import MISSING, OPTIONS, STABLE, Spec
from simulation.walks.world import World


class Step(Protocol):
    """A step of a walk."""

    async def __call__(self, world: World) -> None:
        """Carry it out."""
        ...


MAX_STEPS: Final = (4, 8, 16, 24)
"""The maximum numbers of steps. Hypothesis prefers short lists, so at least half of them are drawn."""
PROXY_WALKS, UPDATE_WALKS = "proxies", "updates"
WITH: Final = ("", "", "", PROXY_WALKS, UPDATE_WALKS)
"""What a walk has that takes longer: MemcachedProxies, or updates in place. One of five each."""
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
_OTHERS: Final = ("wk-a", "wk-b", "wk-s", "wk-p", "wk-q")
_NAMES: Final = st.sampled_from(("wk-a", "wk-s", "wk-p", "wk-a", "wk-s", *_OTHERS))
_REFERENCES: Final = st.sampled_from((*STABLE, *STABLE, STABLE[0], "wk-a", MISSING))
_SPECS: Final = st.builds(
    Spec, st.integers(1, 3), st.sampled_from(tuple(OPTIONS)), st.sampled_from((IMAGE, OTHER_IMAGE))
)
_PUTS: Final = st.builds(actions.Put, _NAMES, _SPECS)
_PROXY_NAMES: Final = st.sampled_from(("wk-x", "wk-x", "wk-y"))
_PROXIES: Final = st.builds(actions.Put, _PROXY_NAMES, st.builds(replace, _SPECS, reference=_REFERENCES))
_STABLE: Final = st.sampled_from((*STABLE, STABLE[0]))
_WAITS: Final = st.builds(Wait, st.sampled_from((0.01, 0.2, 1, 3, 12, 40, 150, 700, 4000)))
PROPAGATIONS: Final = ("Background", "Foreground", "Orphan", actions.HELD)
_AMOUNTS: Final = st.one_of(
    st.tuples(st.sampled_from((1, 2, 3, 5, 20)), st.none()),
    st.tuples(st.none(), st.sampled_from((0.5, 5.0, 20.0, 60.0))),
)
_WATCHED: Final = st.sampled_from(("*", *WATCHED))
_PROXY_WATCHED: Final = st.sampled_from(("memcacheds", PROXIES, "statefulsets", "deployments", "pods"))


@st.composite
def _faults(draw: st.DrawFn, requests: tuple[str, ...], watched: st.SearchStrategy[str]) -> Step:
    what = draw(st.sampled_from((*requests, "watch")))
    if what == "watch":
        what, faults = f"watch {draw(watched)}", tuple(WATCH_FAULTS)
    else:
        faults = (*FAULTS, *(CREATION_FAULTS if what.startswith("create") else ()))
    times, seconds = draw(_AMOUNTS)
    return Inject(what, draw(st.sampled_from(faults)), times, seconds, draw(st.integers(0, 3)))


@st.composite
def _unlisted(draw: st.DrawFn, resources: st.SearchStrategy[str]) -> Step:
    times, seconds = draw(_AMOUNTS)
    return Unlisted(draw(resources), draw(st.sampled_from(tuple(LIST_FAULTS))), times, seconds, draw(st.booleans()))


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
    (12, _faults((*WRITES, *READS), _WATCHED)),
    (4, _unlisted(st.sampled_from(LISTED))),
    (1, st.builds(actions.Replace, _NAMES, _SPECS)),
    (2, st.builds(Interrupt, _WATCHED, st.sampled_from(tuple(INTERRUPTIONS)), st.booleans())),
    (3, st.builds(Hold, st.lists(st.sampled_from(WATCHED), min_size=1, max_size=3).map(tuple))),
    (2, st.builds(Pass, st.booleans())),
    (2, st.builds(Compact)),
    (1, st.builds(Empty, st.sampled_from(WATCHED))),
    (4, st.builds(Process, st.integers(0, 1), st.sampled_from(PROCESSES))),
    (1, st.builds(Lease, st.booleans())),
)
"""The steps, each with its weight: `one_of` would give each the same one."""
_PROXY_STEPS: Final[tuple[tuple[int, st.SearchStrategy[Step]], ...]] = (
    (8, _PROXIES),
    (5, st.builds(actions.Put, _STABLE, _SPECS)),
    (12, st.builds(actions.Scale, _STABLE, st.integers(1, 4))),
    (4, st.builds(actions.Scale, _PROXY_NAMES, st.integers(1, 3))),
    (6, st.builds(actions.Refer, _PROXY_NAMES, _REFERENCES)),
    (5, st.builds(actions.Pause, st.one_of(_PROXY_NAMES, _STABLE), st.booleans())),
    (3, st.builds(actions.Delete, _PROXY_NAMES, st.sampled_from(PROPAGATIONS))),
    (2, st.builds(actions.Delete, _STABLE, st.sampled_from(PROPAGATIONS))),
    (4, st.builds(actions.Replace, _PROXY_NAMES, st.builds(replace, _SPECS, reference=_REFERENCES))),
    (2, st.builds(actions.Replace, _STABLE, _SPECS)),
    (8, _unlisted(_PROXY_WATCHED)),
    (8, _faults(("patch *", "apply *", "create *", f"patch {PROXIES}/status", f"list {PROXIES}"), _PROXY_WATCHED)),
    (3, st.builds(Hold, st.lists(_PROXY_WATCHED, min_size=1, max_size=3).map(tuple))),
    (10, _WAITS),
)
"""More steps of walks with proxies."""


_IMAGES: Final = st.sampled_from((IMAGE, OTHER_IMAGE))
_FIRST: Final = st.builds(
    updates.Updated, size=st.sampled_from((1, 2, 3, 3, 4)), warm=st.sampled_from((True, True, False))
)


def _changes(names: Iterable[str]) -> st.SearchStrategy[updates.Change]:
    """Changes of up to three of these fields."""
    fields = [(name, value) for name in names for value in updates.VALUES[name]]
    found = st.lists(st.sampled_from(fields), min_size=1, max_size=3, unique_by=lambda each: each[0])
    return st.builds(updates.Change, found.map(tuple))


_CHANGES: Final = _changes((*updates.IN_PLACE, *updates.IN_PLACE, *updates.VALUES))
_PROBLEMS: Final = st.sampled_from(updates.PROBLEMS)
_EVENTS: Final = st.builds(updates.Slot, _SMALL, st.sampled_from(updates.SLOT_EVENTS))
_POD_WRITES: Final = st.sampled_from(("patch pods*", "patch pods", "patch pods/resize", "delete pods"))
_POD_FAULTS: Final = st.sampled_from([each for each in FAULTS if each not in ("late", "hanging")])
_UPDATE_STEPS: Final[tuple[tuple[int, st.SearchStrategy[Step]], ...]] = (
    (16, _CHANGES),
    (6, _PROBLEMS),
    (10, _EVENTS),
    (2, st.builds(updates.Forge, _SMALL, _SMALL, st.sampled_from(updates.FORGED))),
    (2, st.builds(updates.Hasty, _IMAGES, st.sampled_from((0.2, 3.0, 12.0, 40.0)))),
    (2, st.builds(actions.Pod, _SMALL, st.just(False))),
    (2, st.builds(Inject, _POD_WRITES, _POD_FAULTS, st.sampled_from((1, 2)), st.none(), st.integers(0, 2))),
    (2, st.builds(Process, st.integers(0, 1), st.sampled_from(PROCESSES))),
    (12, st.builds(Wait, st.sampled_from((0.2, 1, 3, 10, 30, 120, 700)))),
)
"""The steps of walks with updates in place. The operator gets all events at once, so that it knows of all pods."""


@st.composite
def _steps(draw: st.DrawFn, steps: tuple[tuple[int, st.SearchStrategy[Step]], ...]) -> Step:
    weighted = tuple(number for number, (weight, _) in enumerate(steps) for _ in range(weight))
    return draw(steps[draw(st.sampled_from(weighted))][1])


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """Random walks. Each begins with an object, which is usually ready before the other steps."""
    kind = draw(st.sampled_from(WITH))
    if kind:
        return draw(proxy_walks() if kind == PROXY_WALKS else update_walks())
    first = (draw(_PUTS), Wait(draw(st.sampled_from((6.0, 6.0, 1.5, 0.0)))))
    return _walk(draw, first, _STEPS)


@st.composite
def update_walks(draw: st.DrawFn) -> Walk:
    """Those whose pods are updated in place. At the end, nothing else goes wrong, and then nothing at all.

    Backoffs of half an hour are long for a standby, and for syncs.
    """
    created = (actions.Put(updates.NAME, draw(_FIRST)), Wait(60.0))
    first = (*created, draw(st.one_of(_PROBLEMS, _EVENTS)), Wait(1.5), draw(_changes(updates.IN_PLACE)))
    walk = _walk(draw, first, _UPDATE_STEPS)
    needs_user = any(isinstance(step, updates.Forge) or getattr(step, "missing", "") for step in walk.steps)
    end = (updates.Settle(), updates.Nodes(), *((updates.Replaced(),) if needs_user else ()))
    return replace(walk, operators=1, sync_period=NO_SYNC, steps=(*walk.steps, *end))


@st.composite
def proxy_walks(draw: st.DrawFn) -> Walk:
    """Those with MemcachedProxies. Each begins with a Memcached with slots and a proxy, which are usually ready."""
    cache = actions.Put(STABLE[0], Spec(draw(st.integers(1, 4))))
    proxy = actions.Put("wk-x", Spec(draw(st.integers(1, 3))))
    first = (*draw(st.permutations((cache, proxy))), Wait(draw(st.sampled_from((60.0, 60.0, 6.0, 0.0)))))
    return _walk(draw, first, (*_PROXY_STEPS, *_PROXY_STEPS, *_STEPS))


def _walk(draw: st.DrawFn, first: tuple[Step, ...], steps: tuple[tuple[int, st.SearchStrategy[Step]], ...]) -> Walk:
    most = draw(st.sampled_from(MAX_STEPS))
    return Walk(
        seed=draw(st.integers(0, 99)),
        operators=draw(st.sampled_from((1, 1, 2))),
        sync_period=draw(st.sampled_from((NO_SYNC, NO_SYNC, 5.0))),
        max_retry_delay=draw(st.sampled_from((2.0, 30.0))),
        resolved=draw(st.booleans()),
        steps=(*first, *draw(st.lists(_steps(steps), min_size=most // 2, max_size=most))),
    )
