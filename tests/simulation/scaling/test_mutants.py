"""Mutants of the protocol: each must break what `ScalingWorld` checks, or the tests prove nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from unittest import mock

import pytest
from aiohttp import web

from faults.faulty import NO_RESPONSE, Exchange
from faults.rules import Rule
from memcached_operator.memcached import plan
from memcached_operator.memcached.scaling import change, facts
from memcached_operator.memcached.scaling.decision import advance
from memcached_operator.memcached.scaling.latch import Latch, stable
from memcached_operator.memcachedproxy import plan as proxy_plan
from memcached_operator.parts.ring import Phase
from simulation.scaling.world import LONG, PHASES, ScalingWorld, run

Mutant = Callable[[], Any]
LATE: Final = 25.0
"""Seconds after which a write of a leader that has died arrives."""


@dataclass(frozen=True)
class Late:
    """The operator dies, and its request is executed much later."""

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        exchange.kill()
        await asyncio.sleep(LATE)
        await exchange.forward()
        exchange.reset()
        return NO_RESPONSE


def skipping(skipped: Phase, then: Phase) -> Mutant:
    """One phase follows directly on the one before another."""

    def decide(latch: Latch, known: facts.Facts) -> Latch | None:
        following = advance(latch, known)
        return replace(following, phase=then) if following is not None and following.phase is skipped else following

    return lambda: mock.patch.object(change, "advance", decide)


def aborting() -> Any:
    """Move is given up as Prepare is."""

    def decide(latch: Latch, known: facts.Facts) -> Latch | None:
        is_given_up = latch.phase is Phase.MOVE and known.size != latch.target
        return stable(latch.source) if is_given_up else advance(latch, known)

    return mock.patch.object(change, "advance", decide)


@contextmanager
def unversioned() -> Generator[None]:
    """Late writes of an earlier leader succeed."""

    def any_version(*words: Any, **fields: Any) -> Any:
        return real(*words, **{**fields, "versioned": False})

    real: Any = plan.Plan
    with mock.patch.object(plan, "Plan", any_version), mock.patch.object(proxy_plan, "Plan", any_version):
        yield


Event = Callable[[ScalingWorld], Awaitable[None]]


async def nothing(_: ScalingWorld) -> None:
    """No event."""


async def back(world: ScalingWorld) -> None:
    """The size is changed back in Move."""
    await world.reach(Phase.MOVE)
    await asyncio.sleep(12)
    await world.scale(4)


class Row(NamedTuple):
    """A mutant, and the event after the change of size that shows it."""

    mutant: Mutant
    event: Event = nothing


MUTANTS: Final[dict[str, Row]] = {
    "without Prepare": Row(skipping(Phase.PREPARE, Phase.MOVE)),
    "without Move": Row(skipping(Phase.MOVE, Phase.FINISH)),
    "without Finish": Row(skipping(Phase.FINISH, Phase.PLAIN)),
    "aborted in Move": Row(aborting, back),
}


@pytest.mark.parametrize("row", MUTANTS.values(), ids=MUTANTS.keys())
def test_mutant_is_detected(row: Row) -> None:
    async def scenario(world: ScalingWorld) -> None:
        with row.mutant():
            await world.warm(4, "20s")
            await world.scale(3)
            await row.event(world)
            await world.watch(lambda: bool(world.broken), LONG)
        assert any("serve at the same time" in text for text in world.broken)
        world.broken.clear()

    run(scenario)


LATE_WRITES: Final = {
    f"{what}, {phase}": (what, phase)
    for what in ("apply statefulsets", "apply deployments", "patch memcacheds/status")
    for phase in PHASES
}


async def write_late(world: ScalingWorld, what: str, phase: Phase) -> None:
    """The leader dies in a phase, and its write is executed when others have gone on."""
    await world.warm(duration="5s")
    world.sandbox.proxy.inject(Rule(what, Late(), times=1, skip=PHASES.index(phase)))
    await world.scale(4)
    await world.watch(lambda: bool(world.broken) or world.is_settled(4), LONG)
    await world.watch(lambda: bool(world.broken), LATE)


@pytest.mark.parametrize(("what", "phase"), LATE_WRITES.values(), ids=LATE_WRITES.keys())
def test_late_write_of_an_earlier_leader_fails(what: str, phase: Phase) -> None:
    async def scenario(world: ScalingWorld) -> None:
        await write_late(world, what, phase)
        await world.settle(4)

    run(scenario)


def test_late_write_to_any_version_would_be_harmful() -> None:
    def is_harmful(what: str, phase: Phase) -> bool:
        async def scenario(world: ScalingWorld) -> None:
            await write_late(world, what, phase)
            harmful[:] = world.broken
            world.broken.clear()

        harmful: list[str] = []
        run(scenario)
        return bool(harmful)

    with unversioned():
        assert any(is_harmful(*each) for each in LATE_WRITES.values())
