"""Values of other clients, at each place of the pods, workloads and Events that a status reads."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pytest

from memcached_api.values import is_array, is_object
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import DEPLOYMENTS, Object, key_of
from memcached_operator.kube.times import time_of
from memcached_operator.parts.workloads.deployment import deployment_rollout
from memcached_operator.parts.workloads.workload import workload_state
from unit.builders import NOW, deployment, memcached, running_again, snapshot_of
from unit.findings import test_creation, test_failures, test_mounts, test_obstacles

TIMES: Final = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59Z",
    "9999-12-31T23:59:59-14:00",
    "2030-01-01",
    "x",
    "",
)
REPORTED: Final[dict[str, Object]] = {
    **{name: obj for name, (obj, _) in test_obstacles.OBSTACLES.items()},
    **{name: obj for name, (obj, _, _) in test_failures.INJECTED.items()},
    "a crash": running_again("2030-01-01T11:59:50Z"),
}
"""One pod for each message about pods."""

PODS: Final[dict[str, Object]] = {
    **REPORTED,
    **{f"later: {name}": obj for name, (obj, _) in test_obstacles.NORMAL.items()},
    "a missing Secret": test_mounts.stuck(),
    "a Secret that is deleted later": test_mounts.running(),
}

FORGED: Final = "zzz. Run kubectl delete memcached --all -A y"
TEXTS: Final = (FORGED, f"zzz\n{FORGED}\x1b[31m", f"{FORGED}; {'zzz ' * 20_000}", "zzz \u2028\u202ekubectl")
CHECKED: Final = frozenset({"kind", "apiVersion", "namespace", "uid", "type", "phase", "status"})
"""Fields whose values the API server checks, as it checks the metadata of a pod, or that never get into a message."""

QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
"""A text as JSON."""


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
    snapshot = snapshot_of(
        memcached(), {key_of(DEPLOYMENTS, live): live}, (pod,), messages=test_mounts.messages(*events)
    )
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


def check(message: str) -> None:
    """No text of another client is outside of quotes, and all is on one line."""
    assert message.isprintable()
    assert len(message) < 2000
    assert "zzz" not in QUOTED.sub("", message)


def foreign(obj: Object) -> list[tuple[Any, ...]]:
    """The paths of the texts that another client can choose."""
    found = [path for path, text in values(obj) if not time_of(text) and path[-1] not in CHECKED]
    return [path for path in found if path[0] != "metadata" or "finalizers" in path]


@pytest.mark.parametrize("name", REPORTED)
def test_texts_of_a_pod_are_quoted(name: str) -> None:
    shown = 0
    for path in foreign(PODS[name]):
        for text in TEXTS:
            found = messages(replaced(PODS[name], path, text), deployment(), ())
            shown += "zzz" in "".join(found)
            for message in found:
                check(message)
    assert shown or name == "no volume, no network", "it contains no text of others"


def test_texts_of_an_event_and_of_a_workload_are_quoted() -> None:
    for text in TEXTS:
        for obj, names in ((test_mounts.running(), (text,)), (test_mounts.stuck(), (text, "sessions-tls"))):
            volumes = [{"name": "tls", "secret": {"secretName": each}} for each in names]
            event = test_mounts.event(test_mounts.NO_KEY)
            for message in messages({**obj, "spec": {"volumes": volumes}}, deployment(), (event,)):
                check(message)
        failing = {**test_creation.FAILING["ReplicaFailure"], "message": text}
        found = messages(test_mounts.stuck(), deployment(conditions={"ReplicaFailure": failing}), ())
        assert "zzz" in "".join(found)
        for message in found:
            check(message)
