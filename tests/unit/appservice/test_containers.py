"""The fields that govern the container of an AppService, and its messages."""

from typing import Any

import msgspec
import pytest

from memcached_api.appservice.types import AppServiceSpec
from memcached_operator.appservice.desired.deployment import deployment
from memcached_operator.appservice.status import status
from memcached_operator.engine.kind import Outcome
from memcached_operator.kube.resource import DEPLOYMENTS, Object, key_of
from unit.builders import NOW, appservice, pod, snapshot_of

MISSING_KEY = "couldn't find key b in Secret test/a"
WITH_SECRET: Object = {"envs": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]}


def built(**spec: Any) -> Object:
    """The Deployment of an AppService."""
    cr = appservice(**spec)
    return deployment(cr, msgspec.convert(cr["spec"], AppServiceSpec))


def container(**spec: Any) -> Object:
    """Its container."""
    return built(**spec)["spec"]["template"]["spec"]["containers"][0]


FAILING: dict[str, tuple[Object, str, Object, str]] = {
    "OOM-killed": (
        {"state": {}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}},
        "terminated with exit code 137 (OOMKilled); raise spec.resources.limits.memory, or reduce the memory use of "
        "the process",
        {"resources": {"limits": {"memory": "1Gi"}}},
        "resources",
    ),
    "without a Secret": (
        {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "a" not found'}}},
        'cannot be started: secret "a" not found; create it, or correct spec.envs',
        {"envs": [{"name": "A", "value": "b"}]},
        "env",
    ),
    "without a key": (
        {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": MISSING_KEY}}},
        f"cannot be started: {MISSING_KEY}; create it, or correct spec.envs",
        {"envs": []},
        "env",
    ),
    "without its program": (
        {"state": {"waiting": {"reason": "CreateContainerError", "message": "no command specified"}}},
        "cannot be started: no command specified; correct spec.image",
        {"image": "docker.io/library/nginx:2"},
        "image",
    ),
}


@pytest.mark.parametrize(("state", "message", "remedy", "part"), FAILING.values(), ids=FAILING.keys())
def test_message_names_the_container_and_a_field_that_governs_it(
    state: Object, message: str, remedy: Object, part: str
) -> None:
    live = built()
    live["metadata"]["uid"] = "child"
    found = pod("app-1", containerStatuses=[{"name": "app", "ready": False, **state}])
    snapshot = snapshot_of(appservice(), {key_of(DEPLOYMENTS, live): live}, (found,))
    degraded = status(snapshot, Outcome(), NOW).status["conditions"][2]
    assert degraded["message"] == f"Pod app-1: container app {message}"
    assert container(**WITH_SECRET).get(part) != container(**{**WITH_SECRET, **remedy}).get(part)
