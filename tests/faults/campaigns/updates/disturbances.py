"""What happens while pods are updated: other clients, users, nodes, and changes of the spec in the middle."""

import asyncio
import time
from itertools import pairwise

from aiohttp import web

from faults.campaigns.updates.changes import PATCH, THIRD_IMAGE
from faults.campaigns.updates.kubelet import pod_of
from faults.campaigns.updates.ledger import PREFIX, REVISION, resources
from faults.campaigns.updates.run import Update
from faults.esr import VICTIM
from faults.faulty import Exchange
from faults.rules import Rule
from memcached_api import conditions as c
from support.kubelet import AGENT, DEFERRED, INFEASIBLE, MEMCACHED

LAST, MIDDLE, FIRST = 2, 1, 0
"""The slots, in the order of an update."""
ALL = (LAST, MIDDLE, FIRST)
EVENT_DELAY = 1.0
"""Seconds from the reply to a write until its event arrives."""
PROMPT = 15.0
"""Seconds between two steps of a pod, on a busy machine: 2 on an idle one. Other events follow after 30."""
SLOW = 5.0
"""Seconds until a busy kubelet sees a change."""
VERY_SLOW = 20.0
"""The same, and long after a container that already runs could count as that of the change."""


async def killed_twice(update: Update) -> None:
    """The operator is killed while the first pod is being changed, and while the second one is."""
    for slot in (LAST, MIDDLE):
        await update.wait_begun(slot)
        update.sandbox.operator.kill()
        await update.sandbox.wait_watching()


async def late_events(update: Update) -> None:
    """The events of the operator's own writes arrive after the replies: they do not let it continue."""
    proxy, since = update.sandbox.proxy, time.monotonic()

    def release_later() -> None:
        asyncio.get_running_loop().call_later(EVENT_DELAY, proxy.release)

    async def late(exchange: Exchange) -> web.StreamResponse:
        proxy.hold("pods")
        exchange.after_response(release_later)
        return await exchange.forward()

    proxy.inject(Rule("* pods*", late, name=f"{VICTIM}-*"))
    await update.wait_updated(FIRST)
    for slot in ALL:
        found = [each for each in proxy.requests.writes(since) if each.call.matches("* pods*", f"{VICTIM}-{slot}")]
        calls = found[: len(update.change.writes)]  # later, the record is removed
        longest = max((later.at - earlier.at for earlier, later in pairwise(calls)), default=0.0)
        update.sandbox.check(longest < PROMPT, f"slot {slot}: a step came {longest:.0f} s after the one before")


async def crash_unseen(update: Update) -> None:
    """memcached of a slot crashes and starts again, and the operator gets no event of it."""
    update.expected.add(c.PODS_CRASHING)
    update.sandbox.proxy.hold("pods")
    update.kubelet.crash(LAST, MEMCACHED)
    await update.wait(lambda: bool(update.ledger.restarts(LAST, update.since)), "the container has crashed")
    await update.wait(lambda: update.ledger.settled(LAST), "the container runs again")
    update.kubelet.nodes.reaction = VERY_SLOW


async def stale(update: Update) -> None:
    """The operator writes on the pod that it knows, which has been restarted since: its write must not be accepted."""
    proxy = update.sandbox.proxy

    def written() -> bool:
        calls = [each for each in proxy.requests.writes() if each.call.matches(PATCH, f"{VICTIM}-{LAST}")]
        return any(each.code for each in calls)

    await update.wait(written, "the operator writes on the pod")
    proxy.release()
    update.restarts[LAST] = {MEMCACHED: update.change.restarts[MEMCACHED] + 1}


async def others_unready(update: Update) -> None:
    """The agents of two other slots are not ready: memcached of no slot is touched until one of them is."""
    await update.wait_begun(LAST)
    await _others_untouched_without(update, AGENT)


async def others_overloaded(update: Update) -> None:
    """Two other memcacheds run, but are not ready for a while: their items are not lost, and no slot is changed."""
    await _others_untouched_without(update, MEMCACHED)


async def _others_untouched_without(update: Update, container: str) -> None:
    """This container of the two other slots is not ready for a while; both stay as they are."""
    for slot in (MIDDLE, FIRST):
        update.kubelet.break_container(slot, container)
    await update.check_untouched(MIDDLE, FIRST)
    for slot in (MIDDLE, FIRST):
        update.kubelet.release(slot)


async def updated_unready(update: Update) -> None:
    """The agent of a pod that was changed becomes unready later: the others stay as they are until it is ready."""
    await update.wait_begun(MIDDLE)
    update.kubelet.break_container(LAST, AGENT)
    await update.check_untouched(FIRST)
    update.kubelet.release(LAST)


async def own_unready(update: Update) -> None:
    """The pod that is being changed is not ready afterwards: the others stay as they are until it is."""
    await update.wait_begun(LAST)
    update.kubelet.break_container(LAST, AGENT)
    await update.check_untouched(MIDDLE, FIRST)
    update.kubelet.release(LAST)


async def warming(update: Update) -> None:
    """The pod is not warm after the start of its container: the others stay as they are until it is."""
    update.kubelet.nodes.warming.add(pod_of(LAST))
    await update.wait_begun(LAST)
    await update.check_untouched(MIDDLE, FIRST)
    update.kubelet.release(LAST)


async def other_deleted(update: Update) -> None:
    """A user deletes the pod of another slot: its next pod is new already."""
    await update.wait_begun(LAST)
    await update.delete_pod(MIDDLE)
    update.pods[MIDDLE], update.restarts[MIDDLE] = 2, {}


async def own_deleted(update: Update) -> None:
    """A user deletes the pod that is being changed."""
    await update.wait_begun(LAST)
    await update.delete_pod(LAST)
    await _accept_deletion(update)


async def deleted_while_unready(update: Update) -> None:
    """A user deletes the pod that is being changed, while its container is restarted."""
    step = await update.wait_begun(LAST)

    def unready() -> bool:
        latest = update.ledger.latest(LAST)
        return bool(latest and latest.version > step.version and not latest.ready)

    await update.wait(unready, "the changed pod is not ready")
    await update.delete_pod(LAST)
    await _accept_deletion(update)


async def _accept_deletion(update: Update) -> None:
    """Expect a second pod, and accept the restarts of the first one until it was deleted."""
    pods = update.ledger.uids(LAST, update.since)
    await update.wait(lambda: update.ledger.uids(LAST, update.since) != pods, f"slot {LAST} has another pod")
    found = update.ledger.restarts(LAST, update.since)
    update.sandbox.check(found in ({}, update.change.restarts), f"slot {LAST} had the restarts {found}")
    update.pods[LAST], update.restarts[LAST] = 2, found


async def stuck(update: Update) -> None:
    """The node of the deleted pod has failed, so that the pod stays: the others stay as they are."""
    update.kubelet.nodes.stuck.add(pod_of(LAST))
    await update.wait_begun(LAST)
    await update.check_untouched(MIDDLE, FIRST)
    update.kubelet.release(LAST)


async def node_gone(update: Update) -> None:
    """The node of another slot fails, and its pod is evicted, but stays: no slot is changed."""
    update.kubelet.nodes.stuck.add(pod_of(FIRST))
    await update.wait_begun(LAST)
    await update.delete_pod(FIRST)
    await update.check_untouched(MIDDLE, FIRST)
    update.kubelet.release(FIRST)
    update.pods[FIRST], update.restarts[FIRST] = 2, {}


async def changed_again(update: Update) -> None:
    """The image of the spec is changed again: the remaining pods are changed only once."""
    await update.wait_begun(LAST)
    await update.set_spec({**update.spec, "image": THIRD_IMAGE})
    await update.wait_updated(FIRST)
    await _accept_repeated(update, 1)


async def changed_back(update: Update) -> None:
    """The spec is changed back while the first pod is being changed: the others are never changed."""
    await update.wait_begun(LAST)
    await update.set_spec(update.change.first)
    await update.wait_complete()
    await _accept_repeated(update, 0)
    for slot in (MIDDLE, FIRST):
        update.pods[slot], update.restarts[slot] = 1, {}


async def changed_back_unseen(update: Update) -> None:
    """The same, before the kubelet has seen the first change: it sees both, one after the other."""
    update.kubelet.nodes.reaction = SLOW
    await changed_back(update)


async def _accept_repeated(update: Update, fewest: int) -> None:
    """Accept that the first pod is changed once more, or not, because its first change was in progress."""
    extra = 1 if update.change.cold else 0
    pods = len(update.ledger.uids(LAST, update.since))
    update.sandbox.check(1 + extra <= pods <= 1 + 2 * extra, f"slot {LAST} had {pods} pods")
    found = update.ledger.restarts(LAST, update.since)
    for name, count in update.change.restarts.items():
        times = found.get(name, 0)
        update.sandbox.check(fewest * count <= times <= 2 * count, f"{name} of slot {LAST} restarted {times} times")
    update.pods[LAST], update.restarts[LAST] = pods, found


async def paused(update: Update) -> None:
    """A pause begins while the first pod is being changed, and ends later."""
    await update.wait_begun(LAST)
    await update.set_spec({**update.spec, "rollout": {"paused": True}})
    await asyncio.sleep(1)
    await update.check_untouched(MIDDLE, FIRST)
    await update.set_spec({**update.spec, "rollout": {"paused": False}})


async def scaled(update: Update, size: int) -> None:
    """The number of pods changes while the first one is being changed."""
    await update.wait_begun(LAST)
    await update.set_spec({**update.spec, "size": size})
    update.size = size
    for slot in range(LAST + 1, size):
        update.pods[slot], update.restarts[slot] = 1, {}


async def metadata_removed(update: Update, names: tuple[str, ...]) -> None:
    """Another client removes annotations, and the label with the revision, of a pod that was changed."""
    await update.wait_updated(LAST)
    label = {"labels": {REVISION: None}} if REVISION in names else {}
    annotations = {f"{PREFIX}{name}": None for name in names if name != REVISION}
    update.restored.add(LAST)
    await update.merge_pod(LAST, {"metadata": {**label, "annotations": annotations}})


async def record_removed(update: Update) -> None:
    """Another client removes the operator's record from the pod that was just changed.

    Without it, the operator does not know that it has restarted the container itself.
    """
    update.expected.add(c.PODS_CRASHING)
    await update.wait_begun(LAST)
    await update.wait(lambda: update.ledger.settled(LAST), f"the change of slot {LAST} is in effect")
    await update.merge_pod(LAST, {"metadata": {"annotations": {f"{PREFIX}update": None}}})


async def crashed(update: Update) -> None:
    """The container of another slot crashes meanwhile."""
    await update.wait_begun(LAST)
    update.kubelet.crash(FIRST, MEMCACHED)
    update.expected.add(c.PODS_CRASHING)
    update.order = False  # a pod that does not run is changed first: it has nothing to lose
    await update.wait_complete()
    found = update.ledger.restarts(FIRST, update.since)
    counts = {**update.change.restarts, MEMCACHED: update.change.restarts.get(MEMCACHED, 0) + 1}
    # The update and the crash can be one restart.
    update.sandbox.check(found in (counts, update.change.restarts), f"slot {FIRST} had the restarts {found}")
    update.restarts[FIRST] = found


async def refused(update: Update) -> None:
    """The API server rejects the resize, until it does not any more: the others stay as they are."""
    await update.wait_degraded(c.APPLY_FAILED)
    await update.check_untouched(*ALL)
    for rule in update.rules:
        rule.stop()


async def deferred(update: Update) -> None:
    """The node refuses the resize, and makes it later: the others stay as they are until it has."""
    update.kubelet.nodes.resizes = DEFERRED
    await update.wait_begun(LAST)
    await update.wait_degraded(c.APPLY_FAILED)
    await update.check_untouched(*ALL)
    update.kubelet.nodes.resizes = ""
    update.kubelet.wake()


async def infeasible(update: Update) -> None:
    """The node can never resize the pod, which gets its resources back; then the user asks for what it had."""
    update.kubelet.nodes.resizes = INFEASIBLE
    latest = update.ledger.latest(LAST)
    before = resources(latest.pod) if latest else {}

    def has_them_back() -> bool:
        now = update.ledger.latest(LAST)
        changes = update.ledger.count(LAST, "resources", update.since)
        return now is not None and changes > 1 and resources(now.pod) == before

    await update.wait_degraded(c.APPLY_FAILED)
    await update.wait(has_them_back, "the pod has its resources back")
    await update.check_untouched(*ALL)
    await update.set_spec(update.change.first)
    for slot in ALL:
        update.pods[slot], update.restarts[slot] = 1, {}


async def counts_reset(update: Update) -> None:
    """The kubelet resets restart counts, which the API allows."""
    update.kubelet.nodes.resets = True


async def ends_forgotten(update: Update) -> None:
    """The kubelet does not report how containers ended."""
    update.kubelet.nodes.forgets = True


async def kubelet_restarted(update: Update) -> None:
    """The kubelet starts again while a pod is being changed: it acts late, and reports containers as unready."""
    await update.wait_begun(LAST)
    update.kubelet.nodes.reaction = SLOW
    for slot in ALL:
        update.kubelet.break_container(slot, MEMCACHED)
    await update.wait(lambda: not _is_ready(update, LAST), "the kubelet reports containers as unready")
    for slot in ALL:
        update.kubelet.release(slot)


def _is_ready(update: Update, slot: int) -> bool:
    latest = update.ledger.latest(slot)
    return latest is not None and latest.ready


async def race(update: Update) -> None:
    """memcached of each slot ends while the pod is changed, and is started as it was, for 3 s."""
    update.expected.add(c.PODS_CRASHING)
    for slot in ALL:
        update.restarts[slot] = {name: count + 1 for name, count in update.change.restarts.items()}


async def racing(update: Update) -> None:
    """Prepare `race`."""
    update.kubelet.nodes.races |= set(map(pod_of, ALL))


async def killed_by_resize(update: Update) -> None:
    """memcached of a slot is killed for lack of memory while it is resized."""
    update.expected.add(c.PODS_CRASHING)
    update.restarts[LAST] = {MEMCACHED: update.change.restarts.get(MEMCACHED, 0) + 1}


async def killing(update: Update) -> None:
    """Prepare `killed_by_resize`."""
    update.kubelet.nodes.kills.add(pod_of(LAST))


async def infeasible_and_back(update: Update) -> None:
    """The node refuses the resize, and the spec is changed back."""
    update.kubelet.nodes.resizes = INFEASIBLE
    await update.wait_begun(LAST)
    await update.wait_degraded(c.APPLY_FAILED)
    await update.set_spec(update.change.first)
    for slot in ALL:
        update.pods[slot], update.restarts[slot] = 1, {}


async def infeasible_and_replaced(update: Update) -> None:
    """The node refuses the resize, and the user has all pods replaced, which is the remedy in the message."""
    update.kubelet.nodes.resizes = INFEASIBLE
    await update.wait_begun(LAST)
    message = await update.wait_degraded(c.APPLY_FAILED)
    update.sandbox.check("restartedAt" in message, f"the message has no remedy: {message}")
    await update.set_spec({**update.spec, "rollout": {"restartedAt": "2026-11-22T10:00:00Z"}})
    for slot in ALL:
        update.pods[slot], update.restarts[slot] = 2, {}


async def missing(update: Update, then: str) -> None:
    """The new image does not exist: the pod is restored, the others stay as they are; then the image is corrected."""
    await update.wait_degraded(c.IMAGE_UNAVAILABLE)
    await update.check_untouched(MIDDLE, FIRST)
    await _check_restored(update)
    if then == "killed":
        update.sandbox.operator.kill()
        await update.sandbox.wait_watching()
        await update.check_untouched(*ALL)
    corrected = update.change.first if then == "back" else update.change.corrected
    since = update.ledger.version
    await update.set_spec(corrected)
    await update.wait_complete()
    restarts = update.ledger.restarts(LAST, since)
    expected = update.change.restarts if then != "back" else dict[str, int]()
    update.sandbox.check(restarts == expected, f"slot {LAST} had the restarts {restarts} after the correction")
    if update.change.cold:
        update.pods[LAST] = 3
    else:
        update.restarts[LAST] = update.ledger.restarts(LAST, update.since)
    for slot in (MIDDLE, FIRST) if then == "back" else ():
        update.pods[slot], update.restarts[slot] = 1, {}


async def _check_restored(update: Update) -> None:
    """Check that the pod whose image is missing runs with its previous one, unless it is a new pod."""
    if update.change.cold:
        return

    def restored() -> bool:
        return update.ledger.settled(LAST)

    await update.wait(restored, f"slot {LAST} is restored")
    await update.check_untouched(*ALL)
    update.sandbox.check(len(update.ledger.uids(LAST, update.since)) == 1, "the pod was replaced")
