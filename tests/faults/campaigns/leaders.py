"""T11: two operators at once. Whatever happens to one of them, or to the Lease: at every moment one writer."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from aiohttp import web

from faults.campaigns.mutants import copied
from faults.case import Case, References
from faults.election import AT_ONCE, EXPIRY, Candidate, Election, Own, election, same, with_arguments, with_environment
from faults.esr import JITTER, LONGEST_PATIENCE, VICTIM, reached
from faults.faulty import Exchange, FieldError, Hang, Lose, Refuse, Reset
from faults.process import Operator
from faults.rules import Rule
from faults.stage import NORMAL, Settings, Stage, until
from faults.workloads import BY_NAME, IMAGE, OTHER_IMAGE, cache
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.runtime.leader_election import ATTEMPT_TIMEOUT, RENEW_DEADLINE, RETRY_PERIOD
from memcached_operator.status.conditions import PROGRESS_PERIOD

VICTIMS = (VICTIM, "other", "third")
"""Objects that are changed all the time: there is always something to write."""
LATE = "late"
"""One more, made in the middle of it."""
PACE = 1.0
"""Seconds between changes."""
STEADY = 20.0
"""Seconds in which a lease would have run out that nobody renews."""
BRIEF = 5.0
"""Seconds that a leader may stand still and go on."""
LAPSE = ATTEMPT_TIMEOUT - RETRY_PERIOD
"""Seconds that renewals may fail in whatever way: it is over before the second try."""
SKEW = 300
"""Seconds by which a clock is wrong."""
Happening = Callable[[Election, Candidate], Awaitable[None]]
"""What happens to the leader, or to the Lease."""


@dataclass(frozen=True)
class Plot:
    """A happening; how processes of the first leader, and of the other, end; what the two have of their own.

    `says`: what the templates of all pods contain in the end; else all is as in a run without faults. `bare`: the
    objects name no image.
    """

    happens: Happening
    exits: tuple[int, ...] = ()
    exits_of_other: tuple[int, ...] = ()
    own: Mapping[str, Own] = field(default_factory=lambda: {"one": same, "two": same})
    says: str = ""
    bare: bool = False


@dataclass(frozen=True)
class Freeze:
    """Stop the operator as its request arrives: the API server carries it out, and the reply waits."""

    operator: Operator

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        self.operator.signal(SIGSTOP)
        return await exchange.forward()


async def played(stage: Stage, references: References, plot: Plot) -> None:
    """Two candidates, of which the first leads; it happens; then there is one leader, and all is as it should be."""
    expected = await references.of(BY_NAME["create"])
    async with election(stage, references.plane, plot.own) as held:
        one, two = held.candidates.values()
        one.operator.start()
        await held.led(NORMAL)
        two.operator.start()
        await until(partial(_stands_by, two), NORMAL, "the standby looks at the lease")
        for name in VICTIMS:
            await stage.create(MEMCACHEDS, name, {"size": 2} if plot.bare else cache(size=2))
        for name in VICTIMS:
            await stage.settled(MEMCACHEDS, name)
        async with changes(stage):
            await plot.happens(held, one)
            await asyncio.sleep(BRIEF)
        for name in VICTIMS:
            await stage.change(MEMCACHEDS, name, {}, {"size": 2})
            await stage.settled(MEMCACHEDS, name)
        await rest(held)
        if plot.says:
            await all_say(held, plot.says)
        else:
            await reached(stage, MEMCACHEDS, expected, NORMAL, loose=True)
        _judge(held, plot)


async def _stands_by(candidate: Candidate) -> bool:
    return any(entry.call.what == "get leases" and entry.code for entry in candidate.proxy.journal.entries)


def _judge(held: Election, plot: Plot) -> None:
    stage = held.stage
    for faults in (held.strangers(), held.rushed()):
        stage.holds(not faults, f"{len(faults)} times: {'; '.join(faults[:2])}")
    made = [each.proxy.journal.counts("create", name) for each in held.candidates.values() for name in VICTIMS]
    total = sum(sum(each.values()) for each in made)
    stage.holds(total == 2 * len(VICTIMS), f"children were made {total} times, not {2 * len(VICTIMS)}")
    for each, exits in zip(held.candidates.values(), (plot.exits, plot.exits_of_other), strict=True):
        stage.holds(tuple(each.operator.exits) == exits, f"{each.name} ended with {each.operator.exits}, not {exits}")
        stage.holds("Traceback" not in each.operator.text(), f"the log of {each.name} has a traceback")


@asynccontextmanager
async def changes(stage: Stage) -> AsyncGenerator[None]:
    """Objects are changed all the time while the block runs."""

    async def change() -> None:
        for number in count():
            name = VICTIMS[number % len(VICTIMS)]
            await stage.change(MEMCACHEDS, name, {}, {"size": 1 + number % 4})
            await asyncio.sleep(PACE)

    changing = asyncio.create_task(change())
    try:
        yield
    finally:
        changing.cancel()
        await asyncio.wait((changing,))


async def rest(held: Election) -> None:
    """Nobody writes while everything is read once more, and each object's status says what is."""
    await asyncio.sleep(PROGRESS_PERIOD)
    since = time.monotonic()
    await asyncio.sleep(max(held.stage.settings.relist, BRIEF) * JITTER + LONGEST_PATIENCE)
    written = held.writes(since)
    held.stage.holds(not written, f"writes in the quiet period: {'; '.join(map(str, written))}")


async def killed(held: Election, leader: Candidate) -> None:
    """SIGKILL; it is there again at once, and must wait like anybody else."""
    identity = held.identity()
    leader.operator.kill()
    await held.led(but=identity)


async def killed_for_long(held: Election, leader: Candidate) -> None:
    """SIGKILL; it is there again when the other leads."""
    await leader.operator.away()
    await held.led(by=held.other(leader))
    leader.operator.start()


async def killed_in_turn(held: Election, leader: Candidate) -> None:
    """Each of the two is killed while it leads."""
    await killed_for_long(held, leader)
    await killed_for_long(held, held.other(leader))


async def stopped(held: Election, leader: Candidate) -> None:
    """It stands still until the other leads, and goes on."""
    leader.operator.signal(SIGSTOP)
    await continued(held, leader)


async def continued(held: Election, leader: Candidate) -> None:
    """It goes on when the other leads: then it must end, and not write before."""
    await held.led(by=held.other(leader))
    await asyncio.sleep(1)
    since, process = time.monotonic(), leader.process_at(time.monotonic())
    leader.operator.signal(SIGCONT)
    await _ended(leader, AT_ONCE)
    tried = [entry for entry in leader.proxy.journal.writes(since) if leader.process_at(entry.at) == process]
    held.stage.holds(not tried, f"the former leader tried to write: {'; '.join(map(str, tried))}")


async def _ended(leader: Candidate, seconds: float) -> None:
    async def look() -> bool:
        return bool(leader.operator.exits)

    await until(look, seconds, f"{leader.name} ends")


async def stopped_at(held: Election, leader: Candidate, what: str) -> None:
    """It stands still while it waits for the answer to a request of a kind."""
    (armed,) = leader.proxy.arm(Rule(what, Freeze(leader.operator), times=1))
    await held.stage.create(MEMCACHEDS, LATE, cache(size=1))
    await asyncio.wait_for(armed.over.wait(), NORMAL)
    await continued(held, leader)
    await held.stage.settled(MEMCACHEDS, LATE)


async def stopped_briefly(held: Election, leader: Candidate) -> None:
    """It stands still, but not until the lease has run out: it leads on."""
    async with keeping(held):
        for _ in range(3):
            leader.operator.signal(SIGSTOP)
            await asyncio.sleep(BRIEF)
            leader.operator.signal(SIGCONT)
            await asyncio.sleep(BRIEF)


async def ended(held: Election, leader: Candidate) -> None:
    """SIGTERM, thrice in turn: the other leads at once."""
    for _ in range(3):
        other = held.other(leader)
        await leader.operator.leave()
        await held.led(AT_ONCE, by=other)
        leader.operator.start()
        leader = other


async def ended_in_vain(held: Election, leader: Candidate) -> None:
    """SIGTERM, and the lease cannot be given up: the other leads when it has run out."""
    (armed,) = leader.proxy.arm(Rule("update leases", Refuse(500, "InternalError")))
    await leader.operator.leave()
    await held.led(by=held.other(leader))
    armed.lift()
    leader.operator.start()


async def refused(held: Election, leader: Candidate, what: str, fault: FieldError) -> None:
    """The leader's renewals fail until it ends."""
    identity = held.identity()
    (armed,) = leader.proxy.arm(Rule(what, fault))
    await _ended(leader, RENEW_DEADLINE + AT_ONCE)
    armed.lift()
    await held.led(but=identity)


async def refused_briefly(held: Election, leader: Candidate, what: str, fault: FieldError) -> None:
    """Some of the leader's renewals fail: it leads on."""
    async with keeping(held):
        (armed,) = leader.proxy.arm(Rule(what, fault, seconds=LAPSE))
        await asyncio.wait_for(armed.over.wait(), NORMAL)
        await asyncio.sleep(RENEW_DEADLINE)


async def refused_to_all(held: Election, leader: Candidate) -> None:
    """Nobody can write the Lease for a while: nobody leads, and one does afterwards."""
    rules = [each.proxy.arm(Rule("update leases", Refuse(403, "Forbidden")))[0] for each in held.candidates.values()]
    await asyncio.sleep(STEADY)
    since = time.monotonic()
    await asyncio.sleep(BRIEF)
    written = held.writes(since)
    held.stage.holds(not written, f"writes while nobody leads: {'; '.join(map(str, written))}")
    for rule in rules:
        rule.lift()
    await held.led(since=since)


async def cut_off(held: Election, leader: Candidate, fault: FieldError) -> None:
    """The leader reaches nothing at all until the other leads."""
    (armed,) = leader.proxy.arm(Rule("*", fault))
    for stream in leader.proxy.open_watches():
        await stream.interrupt(cut=True)
    await held.led(by=held.other(leader))
    armed.lift()


async def deleted(held: Election, leader: Candidate) -> None:
    """Somebody deletes the Lease, again and again: the leader leads on."""
    async with keeping(held):
        for _ in range(8):
            try:
                await held.stage.delete(held.key.resource, held.key.name)
            except ApiError as error:
                if error.code != 404:
                    raise
            await asyncio.sleep(RETRY_PERIOD * 0.8)
        await asyncio.sleep(STEADY)


async def taken(held: Election, leader: Candidate) -> None:
    """Somebody writes another name into the Lease: the leader ends, and the lease runs out."""
    since = time.monotonic()
    await held.stage.merge(held.key, {"spec": {"holderIdentity": "somebody"}})
    await held.led(EXPIRY, since=since, but="somebody")


async def steady(held: Election, leader: Candidate) -> None:
    """Nothing happens for a while, and nothing changes; then the leader dies, and the other takes its time."""
    async with keeping(held):
        await asyncio.sleep(STEADY)
    await killed_for_long(held, leader)
    async with keeping(held):
        await asyncio.sleep(STEADY)


async def upgraded(held: Election, leader: Candidate, between: str) -> None:
    """The old release ends, the new one leads, and the old one stays as a standby; then back again, by a crash."""
    other = held.other(leader)
    await leader.operator.leave()
    await held.led(AT_ONCE, by=other)
    leader.operator.start()
    await asyncio.sleep(STEADY)
    await all_say(held, between)
    await killed_for_long(held, other)
    await asyncio.sleep(BRIEF)


async def all_say(held: Election, what: str) -> None:
    """The pods of all objects are those of one release."""
    for name in VICTIMS:
        found = await held.stage.get(DEPLOYMENTS, name) or {}
        template = json.dumps(found["spec"]["template"])
        held.stage.holds(what in template, f"the pods of {name} have no {what}: {template}")


async def rolled(held: Election, leader: Candidate) -> None:
    """The old release ends for good while the new one stands by."""
    await leader.operator.leave()
    await held.led(AT_ONCE, by=held.other(leader))


@asynccontextmanager
async def keeping(held: Election) -> AsyncGenerator[None]:
    """The same process leads all the while."""
    identity = held.identity()
    first = len(held.terms)
    yield
    others = {term.holder for term in held.terms[first:]} - {identity, ""}
    held.stage.holds(not others, f"{others} took the lease from {identity}")


def newer(settings: Settings) -> Settings:
    """Another release: its pods are other ones."""
    target = copied(Path(f"{settings.sources}-newer-{time.monotonic_ns()}"))
    file = target / "operator/memcached_operator/memcached/desired/deployment.py"
    text = file.read_text()
    changed = text.replace("DRAIN_SECONDS = 5", "DRAIN_SECONDS = 6")
    assert changed != text, "the release has no DRAIN_SECONDS to be changed"
    file.write_text(changed)
    return replace(settings, sources=target)


LEASE_FAULTS: dict[str, FieldError] = {
    "403": Refuse(403, "Forbidden"),
    "409": Refuse(409, "Conflict"),
    "429": Refuse(429, "TooManyRequests", retry_after=1),
    "500": Refuse(500, "InternalError"),
    "hang": Hang(),
    "reset": Reset(),
}
NEWER = '"sleep": {"seconds": 6}'
"""In the pods of the other release."""
LOST = (1,)
"""The exit of a leader that must not lead any more."""
PLOTS: dict[str, Plot] = {
    "killed": Plot(killed),
    "killed-for-long": Plot(killed_for_long),
    "killed-in-turn": Plot(killed_in_turn),
    "stopped": Plot(stopped, LOST),
    "stopped-briefly": Plot(stopped_briefly),
    "ended-in-turn": Plot(ended, (0, 0), (0,)),
    "ended-in-vain": Plot(ended_in_vain, (0,)),
    "lease/refused-to-all": Plot(refused_to_all, LOST),
    "lease/deleted": Plot(deleted),
    "lease/taken-by-hand": Plot(taken, LOST),
    "cut-off/reset": Plot(partial(cut_off, fault=Reset()), LOST),
    "cut-off/hang": Plot(partial(cut_off, fault=Hang()), LOST),
    "releases/rolled": Plot(rolled, (0,), own={"one": same, "two": newer}, says=NEWER),
    "releases/there-and-back": Plot(partial(upgraded, between=NEWER), (0,), own={"one": same, "two": newer}),
    "releases/default-image": Plot(
        partial(upgraded, between=IMAGE),
        (0,),
        own={
            name: with_arguments(f"--default-image={image}") for name, image in (("one", IMAGE), ("two", OTHER_IMAGE))
        },
        says=IMAGE,
        bare=True,
    ),
}
STOPS = ("create deployments", "create services", "apply deployments", "patch memcacheds/status", "update leases")
GATE = {"stopped", "lease/deleted"}


def plots() -> dict[str, Plot]:
    """All of them, by name."""
    found = dict(PLOTS)
    for what in STOPS:
        found[f"stopped-at/{what.replace(' ', '-').replace('/', '-')}"] = Plot(partial(stopped_at, what=what), LOST)
    for how, fault in {**LEASE_FAULTS, "lost": Lose()}.items():
        for verb in ("get", "update"):
            what = f"{verb} leases"
            found[f"lease/{verb}-{how}/brief"] = Plot(partial(refused_briefly, what=what, fault=fault))
            found[f"lease/{verb}-{how}/long"] = Plot(partial(refused, what=what, fault=fault), LOST)
    for name, skews in {"leader": (SKEW, 0), "standby": (0, SKEW), "opposite": (SKEW, -SKEW)}.items():
        for sign in (1, -1):
            one, two = (with_environment(FAULTS_CLOCK_SKEW=f"{sign * skew}") for skew in skews)
            way = "ahead" if sign > 0 else "behind"
            found[f"clock/{name}-{way}"] = Plot(steady, own={"one": one, "two": two})
    return found


def cases() -> list[Case]:
    """One per plot."""
    return [
        Case(f"T11/{name}", partial(played, plot=plot), gate=name in GATE, limit=360) for name, plot in plots().items()
    ]
