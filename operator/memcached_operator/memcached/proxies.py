"""The slots that proxies still use. They are kept after the size of a Memcached has been reduced."""

from collections.abc import Iterator

from memcached_api import conditions as c
from memcached_operator.engine.reporting.lists import failure
from memcached_operator.findings.finding import Problem
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Resource
from memcached_operator.parts.ring import NO_USE, Use
from memcached_operator.world.knowledge import State
from memcached_operator.world.snapshot import Snapshot


def kept_size(snapshot: Snapshot, size: int) -> int:
    """The number of slots to keep: `size`, and more existing ones while a proxy or a pod of one uses them.

    While proxies are not listed, each slot may be in use. There is no timeout: to keep a pod is harmless, and to delete
    it early causes errors for clients of the proxy.
    """
    existing = existing_size(snapshot)
    used = existing if unlisted(snapshot) else max((use.servers for use in uses(snapshot).values()), default=0)
    return max(size, min(existing, used))


def existing_size(snapshot: Snapshot) -> int:
    """The number of slots of the StatefulSet; 0 without one."""
    live = snapshot.workload(STATEFULSETS)
    return 0 if live is None else live["spec"].get("replicas", 1)


def waiting(snapshot: Snapshot, size: int, kept: int) -> Iterator[Problem]:
    """What the removal of slots waits for. Nothing if none is kept. `size`: that of the spec. `kept`: `kept_size`."""
    if kept <= size:
        return
    slots = f"Slot {size} is" if kept - size == 1 else f"Slots {size} to {kept - 1} are"
    pronoun = "it" if kept - size == 1 else "them"
    failures = [
        failure(resource, snapshot.namespace, known) for resource, known in snapshot.naming.items() if known.has_failed
    ]
    if unknown := unlisted(snapshot):
        causes = failures or [f"{unknown[0].plural} are not listed yet"]
        text = f"{slots} kept, because a proxy may use {pronoun}: {'. '.join(causes)}"
    else:
        users = _users(snapshot, size)
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        verb = "stop" if more else "stops"
        text = f"{slots} kept until {users[0]}{more} {verb} using {pronoun}"
        # The end of the use may not be known either.
        text = ". ".join([text, *failures])
    yield Problem(c.WAITING_FOR_PROXIES, text)


def unlisted(snapshot: Snapshot) -> list[Resource]:
    """The resources of proxies that are not listed."""
    return [resource for resource, known in snapshot.naming.items() if known.state is State.UNLISTED]


def _users(snapshot: Snapshot, size: int) -> list[str]:
    """The proxies that use more slots than those of the spec, or their pods if the proxies have been deleted."""
    users = [key for key, use in uses(snapshot).items() if use.servers > size]
    owners = [key for key in users if key.resource != PODS]
    return [f"{key.resource.kind} {key.name}" for key in owners or users]


def uses(snapshot: Snapshot) -> dict[Key, Use]:
    """What each proxy, and each pod of one, uses of the slots: they show it by the name of a Memcached."""
    name = snapshot.cr["metadata"]["name"]
    return {key: shown.get(name, NO_USE) for key, shown in snapshot.referrers.items()}
