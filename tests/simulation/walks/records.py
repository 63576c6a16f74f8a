"""What holds during a whole walk: writers, owners, the number of requests, and the processes."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Final

from faults.calls import Entry, max_requests
from faults.campaigns.drift import NOTE
from memcached_operator.engine.runtime.leader_election import RENEW_DEADLINE
from memcached_operator.kube.labels import MANAGED_BY, MANAGER
from memcached_operator.kube.resource import EVENTS, LEASES, PODS, Key, Object, controller_of, nested_map
from simulation.walks.references import RESOURCES
from simulation.walks.specs import OWNERS, PROXIES, STABLE
from simulation.walks.world import USER, Change, World

SPAN: Final = 10.0
RATE: Final = 5.0
"""Requests per second for an object and its children, averaged over SPAN seconds."""
ATTEMPT: Final = 14
"""Requests of one reconcile of an object with slots, if none of its children can be created: two for each."""
BURST: Final = 40
"""Further requests within SPAN seconds of a start, of a new object, of a new spec, or of the end of an outage that may
have hidden them: up to 8 children are written twice, because the first change of a child transfers the ownership of its
fields."""
FAILING_SPAN: Final = 2.0
ENDING: Final = 2.0
"""Seconds between two lists that succeed again, from which on they are the ends of two outages."""
LISTS: Final = 2.0
"""Lists and watches of a resource per second and operator, averaged over SPAN seconds."""


def violations(world: World) -> Iterator[str]:
    """Everything that happened and must not happen."""
    if world.elects:
        yield from world.election.writes_without_lease(list(_unknown_leaders(world)))
    yield from world.election.early_acquisitions()
    yield from _foreign_writes(world)
    yield from _requests(world)
    yield from _lists(world)
    yield from _failures(world)
    yield from _processes(world)
    yield from world.running[1].problems if world.running else ()


def _unknown_leaders(world: World) -> Iterator[float]:
    """The deletions of the Lease while a process did not know who was the leader, because it was starting."""
    starts = [at for each in world.candidates for at in each.operator.starts]
    for change in world.history:
        is_deletion = change.key.resource == LEASES and change.what == "DELETED"
        if is_deletion and any(-STARTING < at - change.at < RENEW_DEADLINE for at in starts):
            yield change.at


STARTING: Final = 2.0
"""Seconds until a process has read the Lease."""


def _foreign_writes(world: World) -> Iterator[str]:
    """Changes and deletions of other owners' objects by the operator, and of other clients' fields."""
    known: dict[str, Object] = {}
    lost: dict[str, float] = {}
    for change in world.history:
        old, uid = change.old, change.new["metadata"]["uid"]
        if old is not None and not _may_change(world, change.key, old, known):
            if change.user == USER and change.at - lost.get(uid, float("-inf")) > RACE:
                yield f"{change.at:.3f}: the operator changed another owner's {change.key}: {change.what}"
        elif not _may_change(world, change.key, change.new, known):
            lost[uid] = change.at
        if old is not None and change.what == "MODIFIED" and _has_note(old) and not _has_note(change.new):
            yield f"{change.at:.3f}: the annotation of another client was removed from {change.key}"
        known[uid] = change.new


RACE: Final = 0.05
"""Seconds for which a write can be on its way when its object gets another owner."""


def _may_change(world: World, key: Key, old: Object, known: Mapping[str, Object]) -> bool:
    """Whether one of our objects controls an object, directly or not, or has done so; and no step has created it.

    `known`: the objects that have existed, by uid.
    """
    if key.resource not in (*RESOURCES, PODS):
        return key.resource in (*OWNERS.values(), LEASES, EVENTS)
    owner = controller_of(old)
    while owner is not None and owner["kind"] not in KINDS:
        if (above := known.get(owner["uid"])) is None:
            return False
        old, owner = above, controller_of(above)
    if owner is None:
        is_labeled = nested_map(old, "metadata", "labels").get(MANAGED_BY) == MANAGER
        return is_labeled and old["metadata"]["uid"] not in world.foreign
    return owner["uid"] in known and key.name.startswith(owner["name"])


KINDS: Final = {resource.kind for resource in OWNERS.values()}


def _has_note(obj: Object) -> bool:
    return NOTE in nested_map(obj, "metadata", "annotations")


def _requests(world: World) -> Iterator[str]:
    """More requests for an object than its budget."""
    entries = _entries(world)
    # Reconciles are repeated at each sync and after each delay, which varies by half.
    attempts = 2 / world.settings.max_retry_delay + (1 / world.settings.sync_time if world.settings.sync_time else 0)
    starts = [at for each in world.candidates for at in each.operator.starts]
    starts += _relists(world)
    for name in OWNERS:
        names = (
            (*STABLE, *PROXIES) if name in (*STABLE, *PROXIES) else (name,)
        )  # each change of one concerns the others
        changes = [change.at for change in world.history if change.key.name in names and _is_news(change)]
        times = [entry.at for entry in entries if entry.call.name[: len(name)] == name and entry.call.verb != "watch"]
        yield from _exceeded(f"requests for {name}", times, max(RATE, ATTEMPT * attempts), sorted([*starts, *changes]))


def _relists(world: World) -> Iterator[float]:
    """The ends of outages: the last list that succeeded after one that failed. Objects whose plans waited for it are
    reconciled now.
    """
    for each in world.candidates:
        failed: set[tuple[str, str]] = set()
        ends: list[float] = []
        for entry in each.proxy.requests.entries:
            place = (entry.call.resource, entry.call.namespace)
            if entry.call.verb != "list" or entry.call.resource == EVENTS.plural:
                continue
            if entry.injected:
                failed.add(place)
            elif place in failed:
                failed.discard(place)
                ends.append(entry.at)
        yield from (end for end, later in pairwise([*ends, float("inf")]) if later - end > ENDING)


def _is_news(change: Change) -> bool:
    """Whether a user has created an object, or changed its spec."""
    if change.key.resource not in OWNERS.values() or change.user == USER:
        return False
    return change.old is None or change.old["metadata"]["generation"] != change.new["metadata"]["generation"]


def _lists(world: World) -> Iterator[str]:
    """More lists and watches of a resource than their budget, in a hot loop."""
    for each in world.candidates:
        starts = sorted(each.operator.starts)
        entries = [entry for entry in each.proxy.requests.entries if entry.call.verb in ("list", "watch")]
        for resource in sorted({entry.call.resource for entry in entries}):
            times = [entry.at for entry in entries if entry.call.resource == resource]
            yield from _exceeded(f"lists and watches of {resource}", times, LISTS, starts)


def _failures(world: World) -> Iterator[str]:
    """A request that fails and is repeated more than RATE times per second."""
    for each in world.candidates:
        failed: dict[tuple[str, str], list[Entry]] = {}
        for entry in each.proxy.requests.entries:
            if entry.injected:
                failed.setdefault((entry.call.what, entry.call.name), []).append(entry)
        for (what, name), entries in failed.items():
            if (most := max_requests(entries, FAILING_SPAN)) > RATE * FAILING_SPAN:
                yield f"{what} {name} failed {most} times within {FAILING_SPAN:g} s"


def _exceeded(what: str, times: list[float], rate: float, causes: list[float]) -> Iterator[str]:
    """The first period of SPAN seconds with too many requests. Each of the causes allows BURST more."""
    for number, at in enumerate(times):
        count = bisect_left(times, at + SPAN) - number
        caused = bisect_left(causes, at + SPAN) - bisect_left(causes, at - SPAN)
        if count > rate * SPAN + BURST * caused:
            yield f"{count} {what} within {SPAN:g} s from {at:.3f} s on, with {caused} starts and changes"
            return


def _entries(world: World) -> list[Entry]:
    found = chain.from_iterable(each.proxy.requests.entries for each in world.candidates)
    return sorted((each for each in found if each.call.resource != "leases"), key=lambda each: each.at)


def _processes(world: World) -> Iterator[str]:
    """Exits without a cause, and errors in a log."""
    logs = "\n".join(each.operator.log_text() for each in world.candidates)
    for text in ("Traceback", "unexpected error"):
        if text in logs:
            yield f"the log contains {text}: {logs[max(0, logs.find(text) - 300) :][:3000]}"
    exits = [code for each in world.candidates for code in each.operator.exits]
    if exits.count(0) > world.terminations:
        yield f"{exits.count(0)} exits with 0 after {world.terminations} SIGTERMs"
    failed = len(exits) - exits.count(0)
    if failed > (logs.count("is lost") if world.elects else 0):
        yield f"the operators exited with {exits}"
