"""A case of updates: an update of pods, with a fault or a disturbance, and the checks of what happened to each pod."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from faults.background import while_running
from faults.campaigns.updates.changes import SIZE, Change, Spec
from faults.campaigns.updates.kubelet import Kubelets, simulated_kubelet
from faults.campaigns.updates.ledger import LABEL, RECORD, Ledger, Step, annotation, mismatch
from faults.case import References
from faults.esr import VICTIM, check_operator, check_quiet
from faults.faulty import Fault
from faults.rules import ActiveRule, Rule
from faults.sandbox import MAX_POLL, READY_TIMEOUT, Sandbox, wait_until, wait_until_injected
from faults.state import is_ready
from memcached_api import conditions as c
from memcached_operator.engine.reporting.writer import STATUS_PERIOD
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, nested_list
from memcached_operator.memcached.controller import MEMCACHEDS
from support.lists import listed

UPDATE_TIMEOUT = 240.0
"""Seconds for an update of all pods, with retries, and until their records are removed: about 45 on an idle machine."""
HOLD = 6.0
"""Seconds for which a pod must stay as it is while another one is not ready."""
MARK = "example.com/changed"
"""Annotation of pods that a test has changed."""
SKIPPED = "skipped: this API server cannot resize pods"


@dataclass
class Update:
    """An update in progress: `spec` is the current one, `since` the resourceVersion before it.

    `rules`: the faults at its writes. `restarts`, `pods`: what a disturbance makes slots differ in from the change: the
    restarts of their containers, and the number of their pods. `order`: whether the highest slot is changed first.
    `degraded`: the reasons for Degraded, and `expected` those that the disturbance causes.
    """

    sandbox: Sandbox
    kubelet: Kubelets
    change: Change
    spec: Spec
    since: int = 0
    size: int = SIZE
    order: bool = True
    degraded: set[str] = field(default_factory=set[str])
    expected: set[str] = field(default_factory=set[str])
    rules: list[ActiveRule] = field(default_factory=list[ActiveRule])
    restarts: dict[int, Mapping[str, int]] = field(default_factory=dict[int, Mapping[str, int]])
    restored: set[int] = field(default_factory=set[int])
    """Slots in which another client removes what the operator then restores."""
    pods: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def ledger(self) -> Ledger:
        """What happened to the pods."""
        return self.kubelet.ledger

    async def set_spec(self, spec: Spec) -> None:
        """Change the spec of the object."""
        await self.sandbox.change(MEMCACHEDS, VICTIM, self.spec, spec)
        self.spec = spec

    async def wait_begun(self, slot: int) -> Step:
        """Wait until a slot is being updated; returns its first step."""
        await self.wait(
            lambda: any(step.slot == slot for step in self.ledger.changes(self.since)), f"slot {slot} is updated"
        )
        return next(step for step in self.ledger.changes(self.since) if step.slot == slot)

    async def wait_updated(self, slot: int, seconds: float = UPDATE_TIMEOUT) -> None:
        """Wait until a slot has the current revision and is ready."""
        await self.wait(lambda: self._is_updated(slot), f"the update of slot {slot} is complete", seconds)

    async def wait(self, done: Callable[[], bool], what: str, seconds: float = UPDATE_TIMEOUT) -> None:
        """Wait for something in the ledger."""

        async def poll() -> bool:
            return done()

        await wait_until(poll, seconds, what)

    def _is_updated(self, slot: int) -> bool:
        steps = [step for step in self.ledger.steps(self.since) if step.slot == slot]
        pods = len(self.ledger.uids(slot, self.since))
        done = pods == 2 if self.change.cold else any(LABEL in step.what for step in steps)
        return done and self.ledger.settled(slot)

    async def check_untouched(self, *slots: int) -> None:
        """Check that the operator changes none of these pods for HOLD."""
        since = self.ledger.version
        await asyncio.sleep(HOLD)
        found = [str(step) for step in self.ledger.changes(since) if step.slot in slots]
        self.sandbox.check(not found, f"pods were changed that must stay as they are: {'; '.join(found)}")

    async def merge_pod(self, slot: int, patch: Object) -> None:
        """Another client changes a pod. A mark makes it a write also if the operator has done the same before."""
        meta = patch["metadata"]
        mark = {"annotations": {**meta.get("annotations", {}), MARK: str(time.monotonic())}}
        written = await self.sandbox.merge(self.pod_key(slot), {**patch, "metadata": {**meta, **mark}})
        self.ledger.own.add(int(written["metadata"]["resourceVersion"]))

    async def delete_pod(self, slot: int) -> None:
        """Another client deletes a pod."""
        path = PODS.path(self.sandbox.namespace, f"{VICTIM}-{slot}")
        written = await self.sandbox.client.request("DELETE", path)
        self.ledger.own.add(int(written["metadata"]["resourceVersion"]))

    def pod_key(self, slot: int) -> Key:
        """Key of a slot's pod."""
        return Key(PODS, self.sandbox.namespace, f"{VICTIM}-{slot}")

    async def watch(self) -> None:
        """Record why Degraded is True, until cancelled."""
        version = (await listed(self.sandbox.client, MEMCACHEDS, self.sandbox.namespace))[1]
        while True:
            async for what, obj in self.sandbox.client.watch(MEMCACHEDS, self.sandbox.namespace, "", version):
                version = obj["metadata"]["resourceVersion"]
                found = nested_list(obj, "status", "conditions") if what != "BOOKMARK" else ()
                self.degraded |= {
                    each["reason"] for each in found if (each["type"], each["status"]) == ("Degraded", "True")
                }

    async def wait_degraded(self, reason: str) -> str:
        """Wait until Degraded is True with this reason; returns its message."""
        self.expected.add(reason)

        async def poll() -> str | None:
            found = await self.sandbox.condition(MEMCACHEDS, VICTIM, c.DEGRADED)
            return found["message"] if (found["status"], found["reason"]) == ("True", reason) else None

        return await wait_until(poll, UPDATE_TIMEOUT, f"Degraded is True because of {reason}")

    async def wait_complete(self) -> None:
        """Wait until the object is ready, and all pods are as their template says."""
        last = ""

        async def poll() -> bool:
            nonlocal last
            last = await self._problem()
            return not last

        await wait_until(
            poll,
            UPDATE_TIMEOUT,
            lambda: f"the update is not complete after {UPDATE_TIMEOUT:g} s: {last}",
            MAX_POLL,
        )

    async def _problem(self) -> str:
        obj = await self.sandbox.get(MEMCACHEDS, VICTIM)
        if not is_ready(obj):
            conditions = nested_list(obj or {}, "status", "conditions")
            return f"it is not ready: {[(each['type'], each['status'], each['message']) for each in conditions]}"
        workload = await self.sandbox.get(STATEFULSETS, VICTIM)
        if not workload:
            return "it has no StatefulSet"
        pods, _ = await listed(self.sandbox.client, PODS, self.sandbox.namespace, "")
        found = sorted(pods, key=lambda pod: pod["metadata"]["name"])
        if len(found) != self.size:
            return f"there are {len(found)} pods, want {self.size}"
        left = [f"{pod['metadata']['name']} has a record" for pod in found if annotation(pod, RECORD) is not None]
        return next(filter(None, (*(mismatch(pod, workload) for pod in found), *left)), "")

    def check(self) -> None:
        """Check what the operator did to the pods: one at a time, the highest slot first, each change exactly once."""
        steps = [step for step in self.ledger.changes(self.since) if step.slot < self.size]
        for step in steps:
            problem = self.ledger.problem(step, range(min(self.size, SIZE)))
            self.sandbox.check(not problem, f"{step} was changed while {problem}")
        slots = list(dict.fromkeys(step.slot for step in steps))
        if self.order:
            self.sandbox.check(slots == sorted(slots, reverse=True), f"the order of the slots is {slots}")
        for slot in range(self.size):
            self._check_slot(slot)
        reported = self.degraded - self.expected
        self.sandbox.check(not reported, f"Degraded was True because of {', '.join(sorted(reported))}")

    def _check_slot(self, slot: int) -> None:
        """Check how often a slot was replaced, and its containers restarted."""
        pods = len(self.ledger.uids(slot, self.since))
        wanted = self.pods.get(slot, 2 if self.change.cold else 1)
        self.sandbox.check(pods == wanted, f"slot {slot} had {pods} pods, want {wanted}")
        restarts = self.ledger.restarts(slot, self.since)
        expected = dict(self.restarts.get(slot, self.change.restarts))
        self.sandbox.check(restarts == expected, f"slot {slot} had the restarts {restarts}, want {expected}")
        if slot not in {*self.pods, *self.restarts}:
            self._check_changes(slot)

    def _check_changes(self, slot: int) -> None:
        """Check that a slot got each change once, in order."""
        found = [
            what
            for step in self.ledger.steps(self.since)
            if step.slot == slot
            for what in self.change.does
            if what in step.what
        ]
        if slot in self.restored:
            found = list(dict.fromkeys(found))
        self.sandbox.check(
            found == list(self.change.does), f"the changes of slot {slot} are {found}, want {self.change.does}"
        )


Disturbance = Callable[[Update], Awaitable[None]]
"""Runs after the change of the spec; makes its own checks while the update continues."""


async def run(
    sandbox: Sandbox,
    _: References,
    change: Change,
    rule: Rule | None = None,
    disturb: Disturbance | None = None,
    arrange: Disturbance | None = None,
) -> str | None:
    """Update the pods of an object, with a fault at writes on pods (`rule`) or another disturbance.

    `arrange`: runs before the change of the spec.
    """
    if change.resizes and not await can_resize(sandbox):
        return SKIPPED
    async with simulated_kubelet(sandbox) as kubelet:
        await sandbox.start()
        update = await prepared(sandbox, kubelet, change)
        update.rules = sandbox.proxy.inject(rule) if rule else []
        if rule and rule.times != 1:
            update.expected.add(c.APPLY_FAILED)  # from the third failure on
        async with while_running({"watching the object": update.watch()}):
            if arrange:
                await arrange(update)
            await update.set_spec(change.then)
            for each in update.rules if rule and rule.times else ():
                await wait_until_injected(each, UPDATE_TIMEOUT)
            if disturb:
                await disturb(update)
            await update.wait_complete()
            await check_quiet(sandbox)
            await update.wait_complete()
        update.check()
        check_operator(sandbox)
    return None


async def prepared(sandbox: Sandbox, kubelet: Kubelets, change: Change) -> Update:
    """Create an object with the first spec of a change, and wait until it is ready."""
    await sandbox.create(MEMCACHEDS, VICTIM, change.first)
    await sandbox.wait_ready(MEMCACHEDS, VICTIM, READY_TIMEOUT)
    await asyncio.sleep(STATUS_PERIOD)
    update = Update(sandbox, kubelet, change, change.first)
    update.since = update.ledger.version
    return update


async def can_resize(sandbox: Sandbox) -> bool:
    """Whether the API server can resize pods."""
    found = await sandbox.client.request("GET", "/api/v1")
    return any(each["name"] == "pods/resize" for each in found["resources"])


def at_write(what: str, fault: Fault, *, skip: int = 0, times: int | None = 1) -> Rule:
    """A rule for a write on a pod of the object."""
    return Rule(what, fault, times=times, skip=skip, name=f"{VICTIM}-*")
