"""Values of other clients, at each place of the pods, workloads and Events that a status reads."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from memcached_api.values import is_array, is_object
from memcached_operator.kind import Outcome, Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, Object, key_of
from memcached_operator.workloads.deployment import deployment_rollout
from memcached_operator.workloads.times import time_of
from memcached_operator.workloads.workload import workload_state
from unit.builders import NOW, deployment, memcached, running_again
from unit.workloads import test_creation, test_failures, test_mounts, test_obstacles

TIMES: Final = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "2030-01-01",
    "x",
    "",
)
PODS: Final[dict[str, Object]] = {
    **{name: obj for name, (obj, _) in test_obstacles.OBSTACLES.items()},
    **{name: obj for name, (obj, _) in test_obstacles.NORMAL.items()},
    **{name: obj for name, (obj, _, _) in test_failures.INJECTED.items()},
    "a crash": running_again("2030-01-01T11:59:50Z"),
    "a missing Secret": test_mounts.stuck(),
    "a Secret that is deleted later": test_mounts.running(),
}
"""One pod for each message about pods."""

Change = Callable[[str], str]


def values(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Each text of an object, with its path."""
    if isinstance(node, str):
        yield path, node
    elif is_object(node):
        for name, part in node.items():
            yield from values(part, (*path, name))
    elif is_array(node):
        for index, part in enumerate(node):
            yield from values(part, (*path, index))


def replaced(node: Any, path: tuple[Any, ...], value: str) -> Any:
    """The object with another value at this path."""
    if not path:
        return value
    name, *rest = path
    changed = replaced(node[name], tuple(rest), value)
    if is_array(node):
        return [*node[:name], changed, *node[name + 1 :]]
    return {**node, name: changed}


def messages(pod: Object, live: Object, events: tuple[Object, ...]) -> list[str]:
    """All messages of a status. With a delay until it may change, which must be a usable number."""
    snapshot = Snapshot(memcached(), {key_of(DEPLOYMENTS, live): live}, (pod,), events=events)
    rules = test_failures.RULES
    state = workload_state(deployment_rollout(live), snapshot, Outcome(), NOW, rules=rules, resume="")
    assert state.requeue_after is None or timedelta(seconds=state.requeue_after) >= timedelta()
    return [condition["message"] for condition in state.conditions]


@pytest.mark.parametrize("name", PODS)
def test_no_time_raises(name: str) -> None:
    found = [path for path, text in values(PODS[name]) if time_of(text)]
    for path in found:
        for time in TIMES:
            assert messages(replaced(PODS[name], path, time), deployment(), ())


def test_no_time_of_an_event_or_of_a_workload_raises() -> None:
    live = deployment(conditions=test_creation.FAILING)
    for time in TIMES:
        assert messages(test_mounts.stuck(), live, (test_mounts.event() | {"lastTimestamp": time},))
        for path in [path for path, text in values(live) if time_of(text)]:
            assert messages(test_mounts.stuck(), replaced(live, path, time), ())
