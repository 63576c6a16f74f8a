"""The values of metrics about each MemcachedProxy, from its status."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from memcached_api import conditions as c
from memcached_api.values import is_integer, is_object
from memcached_operator.kube.resource import Object, nested_list, nested_map


class State(NamedTuple):
    """The state of a MemcachedProxy.

    `ready`: its ready pods. `up_to_date`: whether all are, with its spec, and it is not Degraded.
    """

    namespace: str
    name: str
    ready: int
    up_to_date: bool


def states(objects: Iterable[Object]) -> Iterator[State]:
    """The state of each object that has a status. Other clients can write a status of any form."""
    for obj in objects:
        status, meta = nested_map(obj, "status"), obj["metadata"]
        if nested_list(status, "conditions"):
            yield State(meta["namespace"], meta["name"], _number(status, "readyReplicas"), _is_up_to_date(obj))


def _is_up_to_date(obj: Object) -> bool:
    """Whether nothing is degraded and no rollout waits.

    A pause, or a Memcached that is not available, is no problem while all pods have the current spec.
    """
    status, meta = nested_map(obj, "status"), obj["metadata"]
    if status.get("observedGeneration") != meta.get("generation") and "deletionTimestamp" not in meta:
        return False
    found = {each.get("type"): each for each in nested_list(status, "conditions") if is_object(each)}
    degraded, progressing = found.get(c.DEGRADED, {}), found.get(c.PROGRESSING, {})
    if degraded.get("status") == c.TRUE:
        return False
    if progressing.get("reason") not in (c.PAUSED, c.WAITING_FOR_MEMCACHED):
        return progressing.get("reason") == c.ROLLOUT_COMPLETE
    size = _number(nested_map(obj, "spec"), "size")
    return min(_number(status, "updatedReplicas"), _number(status, "readyReplicas")) >= size


def _number(obj: Mapping[str, object], field: str) -> int:
    value = obj.get(field)
    return int(value) if is_integer(value) else 0
