"""The slots that proxies still use. They are kept after the size of a Memcached has been reduced."""

from collections.abc import Iterator

from memcached_api import conditions as c
from memcached_operator.kind import Problem, Snapshot
from memcached_operator.kube.resource import STATEFULSETS, Key


def kept_size(snapshot: Snapshot, size: int) -> int:
    """The number of slots to keep: `size`, and more existing ones while a proxy that names the Memcached uses them.

    There is no timeout: to keep a pod is harmless, and to delete it early causes errors for clients of the proxy.
    """
    live = snapshot.workload(STATEFULSETS)
    existing = 0 if live is None else live["spec"].get("replicas", 1)
    return max(size, min(existing, max(_used(snapshot).values(), default=0)))


def waiting(snapshot: Snapshot, size: int, kept: int) -> Iterator[Problem]:
    """What the removal of slots waits for. Nothing if none is kept. `size`: that of the spec. `kept`: `kept_size`."""
    if kept > size:
        slots = f"Slot {size} is" if kept - size == 1 else f"Slots {size} to {kept - 1} are"
        users = [f"{key.resource.kind} {key.name}" for key, used in _used(snapshot).items() if used > size]
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        verb = "stop" if more else "stops"
        pronoun = "it" if kept - size == 1 else "them"
        yield Problem(c.WAITING_FOR_PROXIES, f"{slots} kept until {users[0]}{more} {verb} using {pronoun}")


def _used(snapshot: Snapshot) -> dict[Key, int]:
    """The number of slots that each proxy uses: what it shows are numbers by the name of the Memcached."""
    name = snapshot.cr["metadata"]["name"]
    return {key: shown.get(name, 0) for key, shown in snapshot.referrers.items()}
