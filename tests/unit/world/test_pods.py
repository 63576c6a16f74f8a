from typing import Any

import msgspec
import pytest

from memcached_operator.engine.reconciler import gather
from memcached_operator.kube.resource import DEPLOYMENTS, PODS, Object
from memcached_operator.world import pod as module
from memcached_operator.world.pod import running_pod_names
from support.stores import whole_store
from unit import builders
from unit.builders import deleted, pod, typed
from unit.engine.test_gather import KIND, member

NAMES: dict[str, tuple[list[Object], list[str]]] = {
    "sorted": ([pod("b"), pod("a")], ["a", "b"]),
    "without pending ones": ([pod("a"), pod("b", phase="Pending")], ["a"]),
    "without finished ones": ([pod("a", phase="Failed"), pod("b", phase="Succeeded")], []),
    "without terminating ones": ([deleted(pod("a")), pod("b")], ["b"]),
    "without those that have no phase": ([{"metadata": {"name": "a"}}], []),
}


@pytest.mark.parametrize(("pods", "names"), NAMES.values(), ids=NAMES.keys())
def test_live_names(pods: list[Object], names: list[str]) -> None:
    assert running_pod_names(typed(*pods)) == names


INVALID: dict[str, dict[str, Any]] = {
    "its labels": {"metadata": {"labels": {"pod-template-hash": 1}}},
    "its owners": {"metadata": {"ownerReferences": {}}},
    "its containers": {"spec": {"containers": [1]}},
    "a message": {"status": {"conditions": [{"type": "Ready", "message": {}}]}},
    "a number": {"status": {"containerStatuses": [{"name": "a", "restartCount": "many"}]}},
}


@pytest.mark.parametrize("change", INVALID.values(), ids=INVALID.keys())
def test_pod_that_is_not_valid_is_ignored(change: dict[str, Any]) -> None:
    """No API server stores one. It must not stop its object."""
    other = member("b")
    other |= {**change, "metadata": {**other["metadata"], **change.get("metadata", {})}}
    cache = whole_store()
    for resource, obj in ((DEPLOYMENTS, builders.owned()), (PODS, member("a")), (PODS, other)):
        cache.put(resource, obj)
    assert [each.name for each in gather(cache, KIND, builders.memcached(), {}).pods] == ["a"]


def test_pod_that_is_not_valid_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert module.pod_of({"metadata": {"name": 1}}) is None
    assert caplog.messages == [
        "a pod is ignored, because it is not valid: Expected `str`, got `int` - at `$.metadata.name`"
    ]


def test_what_a_node_does_not_know_may_be_null() -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": None}
    container = {"name": "a", "state": {"terminated": {"exitCode": 0, "startedAt": None, "finishedAt": None}}}
    found = module.decoded(msgspec.json.encode(pod(containerStatuses=[container], conditions=[condition])))
    assert found is not None
    assert (found.is_ready, found.container_status("a").has_run) == (True, True)
