"""Two operators at the same time. Whatever fails, at most one of them writes at any time."""

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

from faults.background import FailedError, while_running
from faults.campaigns.mutants import copy_sources
from faults.case import Case, References, in_gate
from faults.election import (
    EXPIRY_TIMEOUT,
    TAKEOVER_TIMEOUT,
    Adjustment,
    Candidate,
    Election,
    start_election,
    unchanged,
    with_arguments,
    with_environment,
)
from faults.esr import JITTER, SYNC_MARGIN, VICTIM, wait_for_state
from faults.faulty import Exchange, Fault, Hang, LoseReply, Reject, Reset
from faults.process import Operator
from faults.rules import Rule
from faults.sandbox import READY_TIMEOUT, Sandbox, Settings, wait_for, wait_until, wait_until_injected
from faults.workloads import BY_NAME, IMAGE, OTHER_IMAGE, cache
from memcached_operator.engine.reporting.conditions import PROGRESS_PERIOD
from memcached_operator.engine.runtime.leader_election import ATTEMPT_TIMEOUT, RENEW_DEADLINE, RETRY_PERIOD
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import DEPLOYMENTS
from memcached_operator.memcached.controller import MEMCACHEDS

VICTIMS = (VICTIM, "other", "third")
"""Objects that change continuously, so that there is always something to write."""
LATE_OBJECT = "late"
"""An object that is created during the fault."""
PACE = 1.0
"""Seconds between changes."""
STEADY = 20.0
"""Seconds after which a Lease would have expired without renewals."""
BRIEF = 5.0
"""Seconds for which a leader can be paused and still lead."""
SHORT_FAILURE = ATTEMPT_TIMEOUT - RETRY_PERIOD
"""Seconds for which renewals can fail: less than the time until the second attempt."""
CLOCK_SKEW = 300
"""Seconds by which a clock is wrong."""
Event = Callable[[Election, Candidate], Awaitable[None]]
"""What happens to the leader or to the Lease."""


@dataclass(frozen=True)
class Scenario:
    """An event, the expected exit codes of the first leader and of the other one, and the settings of both.

    `template`: text that all pod templates contain in the end; without it, the state is that of a run without faults.
    `default_image`: the objects have no image.
    """

    event: Event
    exits: tuple[int, ...] = ()
    exits_of_other: tuple[int, ...] = ()
    settings: Mapping[str, Adjustment] = field(default_factory=lambda: {"one": unchanged, "two": unchanged})
    template: str = ""
    default_image: bool = False


@dataclass(frozen=True)
class Pause:
    """Pause the operator when its request arrives: the API server executes it, the operator reads the reply later."""

    operator: Operator

    async def __call__(self, exchange: Exchange) -> web.StreamResponse:
        self.operator.signal(SIGSTOP)
        return await exchange.forward()


async def run_scenario(sandbox: Sandbox, references: References, scenario: Scenario) -> str:
    """The first of two candidates leads; the event happens; then exactly one leads, and the state is correct."""
    expected = await references.of(BY_NAME["create"])
    async with start_election(sandbox, references.plane, scenario.settings) as election:
        one, two = election.candidates.values()
        one.operator.start()
        await election.wait_for_leader(READY_TIMEOUT)
        two.operator.start()
        await wait_until(partial(_stands_by, two), READY_TIMEOUT, "the standby reads the Lease")
        for name in VICTIMS:
            await sandbox.create(MEMCACHEDS, name, {"size": 2} if scenario.default_image else cache(size=2))
        for name in VICTIMS:
            await sandbox.wait_ready(MEMCACHEDS, name)
        async with changing_specs(sandbox) as load:
            await scenario.event(election, one)
            await asyncio.sleep(BRIEF)
        for name in VICTIMS:
            await sandbox.change(MEMCACHEDS, name, {}, {"size": 2})
            await sandbox.wait_ready(MEMCACHEDS, name)
        await check_quiet(election)
        if scenario.template:
            await check_templates(election, scenario.template)
        else:
            await wait_for_state(sandbox, MEMCACHEDS, expected, READY_TIMEOUT, loose=True)
        _check(election, scenario)
        return f"{load.accepted} changes of specs were accepted during the fault"


async def _stands_by(candidate: Candidate) -> bool:
    return any(entry.call.what == "get leases" and entry.code for entry in candidate.proxy.requests.entries)


def _check(election: Election, scenario: Scenario) -> None:
    sandbox = election.sandbox
    for errors in (election.writes_without_lease(), election.early_acquisitions()):
        sandbox.check(not errors, f"{len(errors)} times: {'; '.join(errors[:2])}")
    created = [each.proxy.requests.counts("create", name) for each in election.candidates.values() for name in VICTIMS]
    total = sum(sum(each.values()) for each in created)
    sandbox.check(total == 2 * len(VICTIMS), f"children were created {total} times, want {2 * len(VICTIMS)}")
    for each, exits in zip(election.candidates.values(), (scenario.exits, scenario.exits_of_other), strict=True):
        sandbox.check(
            tuple(each.operator.exits) == exits, f"{each.name} exited with {each.operator.exits}, want {exits}"
        )
        sandbox.check("Traceback" not in each.operator.log_text(), f"the log of {each.name} contains a traceback")


@dataclass
class Load:
    """A user who changes the objects continuously. `accepted`: the number of accepted changes.

    The user sends directly to the API server. No scenario injects a fault there, or into the objects, so every change
    must be accepted.
    """

    sandbox: Sandbox
    accepted: int = 0
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Change one object after the other, until cancelled. Raises FailedError if a change is denied."""
        for number in count():
            async with self._changing:
                await self._change(VICTIMS[number % len(VICTIMS)], 1 + number % 4)
            await asyncio.sleep(PACE)

    async def _change(self, name: str, size: int) -> None:
        try:
            await self.sandbox.change(MEMCACHEDS, name, {}, {"size": size})
        except ApiError as error:
            message = f"spec.size={size} of Memcached {name} was not accepted (after {self.accepted} other changes)"
            raise FailedError(f"{message}: {error}") from error
        self.accepted += 1

    async def finish(self) -> None:
        """Wait for the response to the change in progress; no other one begins."""
        await wait_for(self._changing.acquire(), READY_TIMEOUT, "the last change of a spec is answered")


@asynccontextmanager
async def changing_specs(sandbox: Sandbox) -> AsyncGenerator[Load]:
    """Change objects continuously during the block. Raises FailedError at its end unless all changes were accepted."""
    load = Load(sandbox)
    async with while_running({"changing specs": load.run()}):
        yield load
        await load.finish()
    sandbox.check(load.accepted, "no change of a spec was sent during the fault")


async def check_quiet(election: Election) -> None:
    """Check that nothing is written while everything is listed once more, after progress has been reported."""
    await asyncio.sleep(PROGRESS_PERIOD)
    since = time.monotonic()
    await asyncio.sleep(max(election.sandbox.settings.sync_period, BRIEF) * JITTER + SYNC_MARGIN)
    written = election.writes(since)
    election.sandbox.check(not written, f"writes in the period without changes: {'; '.join(map(str, written))}")


async def killed(election: Election, leader: Candidate) -> None:
    """SIGKILL. It is restarted immediately and waits until the Lease expires."""
    identity = election.identity()
    leader.operator.kill()
    await election.wait_for_leader(not_identity=identity)


async def killed_for_long(election: Election, leader: Candidate) -> None:
    """SIGKILL. It is restarted when the other one leads."""
    await leader.operator.stop()
    await election.wait_for_leader(by=election.other(leader))
    leader.operator.start()


async def killed_in_turn(election: Election, leader: Candidate) -> None:
    """Each of the two is killed while it leads."""
    await killed_for_long(election, leader)
    await killed_for_long(election, election.other(leader))


async def paused(election: Election, leader: Candidate) -> None:
    """The leader is paused until the other one leads, then resumes."""
    leader.operator.signal(SIGSTOP)
    await resume_and_check_exit(election, leader)


async def resume_and_check_exit(election: Election, leader: Candidate) -> None:
    """The leader resumes when the other one leads: it must exit, and must not write before."""
    await election.wait_for_leader(by=election.other(leader))
    await asyncio.sleep(1)
    since, process = time.monotonic(), leader.process_at(time.monotonic())
    leader.operator.signal(SIGCONT)
    await _wait_for_exit(leader, TAKEOVER_TIMEOUT)
    sent = [entry for entry in leader.proxy.requests.writes(since) if leader.process_at(entry.at) == process]
    election.sandbox.check(not sent, f"the former leader sent writes: {'; '.join(map(str, sent))}")


async def _wait_for_exit(leader: Candidate, seconds: float) -> None:
    async def poll() -> bool:
        return bool(leader.operator.exits)

    await wait_until(poll, seconds, f"{leader.name} exits")


async def paused_at(election: Election, leader: Candidate, what: str) -> None:
    """The leader is paused while it waits for the reply to a request of this kind."""
    (active,) = leader.proxy.inject(Rule(what, Pause(leader.operator), times=1))
    await election.sandbox.create(MEMCACHEDS, LATE_OBJECT, cache(size=1))
    await wait_until_injected(active, READY_TIMEOUT)
    await resume_and_check_exit(election, leader)
    await election.sandbox.wait_ready(MEMCACHEDS, LATE_OBJECT)


async def paused_briefly(election: Election, leader: Candidate) -> None:
    """The leader is paused, but resumes before the Lease expires: it continues to lead."""
    async with same_leader(election):
        for _ in range(3):
            leader.operator.signal(SIGSTOP)
            await asyncio.sleep(BRIEF)
            leader.operator.signal(SIGCONT)
            await asyncio.sleep(BRIEF)


async def terminated(election: Election, leader: Candidate) -> None:
    """SIGTERM, three times in turn: the other one leads immediately."""
    for _ in range(3):
        other = election.other(leader)
        await leader.operator.shut_down()
        await election.wait_for_leader(TAKEOVER_TIMEOUT, by=other)
        leader.operator.start()
        leader = other


async def release_fails(election: Election, leader: Candidate) -> None:
    """SIGTERM, and the Lease cannot be released: the other one leads after it has expired."""
    (active,) = leader.proxy.inject(Rule("update leases", Reject(500, "InternalError")))
    await leader.operator.shut_down()
    await election.wait_for_leader(by=election.other(leader))
    active.stop()
    leader.operator.start()


async def renewals_fail(election: Election, leader: Candidate, what: str, fault: Fault) -> None:
    """The leader's renewals fail until it exits."""
    identity = election.identity()
    (active,) = leader.proxy.inject(Rule(what, fault))
    await _wait_for_exit(leader, RENEW_DEADLINE + TAKEOVER_TIMEOUT)
    active.stop()
    await election.wait_for_leader(not_identity=identity)


async def renewals_fail_briefly(election: Election, leader: Candidate, what: str, fault: Fault) -> None:
    """Some of the leader's renewals fail: it continues to lead."""
    async with same_leader(election):
        (active,) = leader.proxy.inject(Rule(what, fault, seconds=SHORT_FAILURE))
        await wait_until_injected(active, READY_TIMEOUT)
        await asyncio.sleep(RENEW_DEADLINE)


async def lease_not_writable(election: Election, leader: Candidate) -> None:
    """No process can write the Lease for a while: none leads, and one leads afterwards."""
    rules = [
        each.proxy.inject(Rule("update leases", Reject(403, "Forbidden")))[0] for each in election.candidates.values()
    ]
    await asyncio.sleep(STEADY)
    since = time.monotonic()
    await asyncio.sleep(BRIEF)
    written = election.writes(since)
    election.sandbox.check(not written, f"writes without a leader: {'; '.join(map(str, written))}")
    for rule in rules:
        rule.stop()
    await election.wait_for_leader(since=since)


async def disconnected(election: Election, leader: Candidate, fault: Fault) -> None:
    """The leader cannot reach the API server until the other one leads."""
    (active,) = leader.proxy.inject(Rule("*", fault))
    for stream in leader.proxy.open_watches():
        await stream.interrupt(cut=True)
    await election.wait_for_leader(by=election.other(leader))
    active.stop()


async def lease_deleted(election: Election, leader: Candidate) -> None:
    """A user deletes the Lease repeatedly: the leader continues to lead."""
    async with same_leader(election):
        for _ in range(8):
            await _delete_lease(election)
            await asyncio.sleep(RETRY_PERIOD * 0.8)
        await asyncio.sleep(STEADY)


async def _delete_lease(election: Election) -> None:
    """A user deletes the Lease, if it exists."""
    try:
        await election.sandbox.delete(election.key.resource, election.key.name)
    except ApiError as error:
        if error.code != 404:
            raise


async def lost_creation(election: Election, leader: Candidate) -> None:
    """A standby loses the race for a new Lease, and a user deletes it before the standby has read its holder.

    The leader continues to lead: it creates the Lease again, and the standby must leave it the time to do so.
    """

    async def deleted(exchange: Exchange) -> web.StreamResponse:
        await _delete_lease(election)
        return await exchange.forward()

    async def late(exchange: Exchange) -> web.StreamResponse:
        exists = partial(election.sandbox.client.get, election.key)
        await wait_until(exists, READY_TIMEOUT, "the leader creates the Lease again", poll=0.1)
        return await exchange.forward()

    other = election.other(leader)
    await other.operator.stop()  # the next process has never read the Lease
    async with same_leader(election):
        reads, _ = other.proxy.inject(Rule("get leases", deleted, times=2), Rule("create leases", late, times=1))
        other.operator.start()
        await wait_until_injected(reads, READY_TIMEOUT)
        await asyncio.sleep(RENEW_DEADLINE)
    codes = [entry.code for entry in other.proxy.requests.entries if entry.call.what == "create leases"]
    election.sandbox.check(codes == [409], f"the replies to the standby's creations are {codes}, want [409]")


async def lease_overwritten(election: Election, leader: Candidate) -> None:
    """A user writes another name into the Lease: the leader exits, and the Lease expires."""
    since = time.monotonic()
    await election.sandbox.merge(election.key, {"spec": {"holderIdentity": "another"}})
    await election.wait_for_leader(EXPIRY_TIMEOUT, since=since, not_identity="another")


async def steady(election: Election, leader: Candidate) -> None:
    """The leader stays the same while nothing happens; then it is killed, and the other one waits for the expiry."""
    async with same_leader(election):
        await asyncio.sleep(STEADY)
    await killed_for_long(election, leader)
    async with same_leader(election):
        await asyncio.sleep(STEADY)


async def upgrade_and_rollback(election: Election, leader: Candidate, between: str) -> None:
    """The old release exits and the new one leads, with the old one as standby; then the new one crashes."""
    other = election.other(leader)
    await leader.operator.shut_down()
    await election.wait_for_leader(TAKEOVER_TIMEOUT, by=other)
    leader.operator.start()
    await asyncio.sleep(STEADY)
    await check_templates(election, between)
    await killed_for_long(election, other)
    await asyncio.sleep(BRIEF)


async def check_templates(election: Election, what: str) -> None:
    """Check that all pod templates contain this text."""
    for name in VICTIMS:
        deployment = await election.sandbox.get(DEPLOYMENTS, name) or {}
        template = json.dumps(deployment["spec"]["template"])
        election.sandbox.check(what in template, f"the pod template of {name} does not contain {what}: {template}")


async def upgrade(election: Election, leader: Candidate) -> None:
    """The old release exits while the new one stands by."""
    await leader.operator.shut_down()
    await election.wait_for_leader(TAKEOVER_TIMEOUT, by=election.other(leader))


@asynccontextmanager
async def same_leader(election: Election) -> AsyncGenerator[None]:
    """Check that the same process leads during the block."""
    identity = election.identity()
    first = len(election.terms)
    yield
    others = {term.holder for term in election.terms[first:]} - {identity, ""}
    election.sandbox.check(not others, f"{others} acquired the Lease from {identity}")


def newer_release(settings: Settings) -> Settings:
    """Sources of another release, whose pod templates differ."""
    target = copy_sources(Path(f"{settings.sources}-newer-{time.monotonic_ns()}"), settings.sources)
    file = target / "operator/memcached_operator/memcached/desired/pods.py"
    text = file.read_text()
    changed = text.replace("DRAIN_SECONDS = 5", "DRAIN_SECONDS = 6")
    assert changed != text, "DRAIN_SECONDS was not found"
    file.write_text(changed)
    return replace(settings, sources=target)


LEASE_FAULTS: dict[str, Fault] = {
    "403": Reject(403, "Forbidden"),
    "409": Reject(409, "Conflict"),
    "429": Reject(429, "TooManyRequests", retry_after=1),
    "500": Reject(500, "InternalError"),
    "hang": Hang(),
    "reset": Reset(),
    "lost": LoseReply(),
}
NEWER = '"sleep": {"seconds": 6}'
"""In the pod templates of the other release."""
LOST = (1,)
"""Exit code of a process that lost the Lease."""
SCENARIOS: dict[str, Scenario] = {
    "killed": Scenario(killed),
    "killed-for-long": Scenario(killed_for_long),
    "killed-in-turn": Scenario(killed_in_turn),
    "paused": Scenario(paused, LOST),
    "paused-briefly": Scenario(paused_briefly),
    "terminated-in-turn": Scenario(terminated, (0, 0), (0,)),
    "release-fails": Scenario(release_fails, (0,)),
    "lease/not-writable": Scenario(lease_not_writable, LOST),
    "lease/deleted": Scenario(lease_deleted),
    "lease/lost-creation": Scenario(lost_creation),
    "lease/overwritten": Scenario(lease_overwritten, LOST),
    "disconnected/reset": Scenario(partial(disconnected, fault=Reset()), LOST),
    "disconnected/hang": Scenario(partial(disconnected, fault=Hang()), LOST),
    "releases/upgrade": Scenario(upgrade, (0,), settings={"one": unchanged, "two": newer_release}, template=NEWER),
    "releases/upgrade-and-rollback": Scenario(
        partial(upgrade_and_rollback, between=NEWER), (0,), settings={"one": unchanged, "two": newer_release}
    ),
    "releases/default-image": Scenario(
        partial(upgrade_and_rollback, between=IMAGE),
        (0,),
        settings={
            name: with_arguments(f"--default-image={image}") for name, image in (("one", IMAGE), ("two", OTHER_IMAGE))
        },
        template=IMAGE,
        default_image=True,
    ),
}
PAUSES = ("create deployments", "create services", "patch deployments", "patch memcacheds/status", "update leases")


def scenarios() -> dict[str, Scenario]:
    """All scenarios, by name."""
    found = dict(SCENARIOS)
    for what in PAUSES:
        found[f"paused-at/{what.replace(' ', '-').replace('/', '-')}"] = Scenario(partial(paused_at, what=what), LOST)
    for how, fault in LEASE_FAULTS.items():
        for verb in ("get", "update"):
            what = f"{verb} leases"
            found[f"lease/{verb}-{how}/brief"] = Scenario(partial(renewals_fail_briefly, what=what, fault=fault))
            found[f"lease/{verb}-{how}/long"] = Scenario(partial(renewals_fail, what=what, fault=fault), LOST)
    for name, skews in {
        "leader": (CLOCK_SKEW, 0),
        "standby": (0, CLOCK_SKEW),
        "opposite": (CLOCK_SKEW, -CLOCK_SKEW),
    }.items():
        for sign in (1, -1):
            one, two = (with_environment(FAULTS_CLOCK_SKEW=f"{sign * skew}") for skew in skews)
            way = "ahead" if sign > 0 else "behind"
            found[f"clock/{name}-{way}"] = Scenario(steady, settings={"one": one, "two": two})
    return found


def cases() -> list[Case]:
    """One case per scenario."""
    found = [
        Case(f"election/{name}", partial(run_scenario, scenario=scenario), limit=360)
        for name, scenario in scenarios().items()
    ]
    return in_gate(found, "election/paused-at/create-deployments")
