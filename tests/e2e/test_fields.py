"""Setting, changing and removing fields updates the children. tests/integration/test_fields.py tests every field."""

from typing import Any

import pytest

from support import kube
from support.kube import Object, eventually, must_get
from support.memcached import IMAGE, OTHER_IMAGE, memcached, wait_until_ready
from support.waiting import READY

pytestmark = pytest.mark.usefixtures("cluster")

FIRST: Object = {
    "size": 2,
    "containerPort": 11311,
    "image": OTHER_IMAGE,
    "imagePullPolicy": "Never",
    "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
    "cache": {"memory": "32Mi", "extraArgs": ["--disable-watch", "-o hashpower=17"]},
    "resources": {"limits": {"cpu": "0.5"}},
}
SECOND: Object = {
    "size": 3,
    "containerPort": 11411,
    "image": IMAGE,
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "two"}],
    "cache": {"memory": "100Mi", "extraArgs": ["--disable-watch"]},
    "resources": {"limits": {"cpu": "50m"}},
}
EXPECTED: dict[str, tuple[Any, Any, Any]] = {
    "replicas": (2, 3, 1),
    "ports": ([11311] * 3, [11411] * 3, [11211] * 3),
    "image": (OTHER_IMAGE, IMAGE, IMAGE),
    "imagePullPolicy": ("Never", "Always", "IfNotPresent"),
    "imagePullSecrets": ([{"name": "one"}, {"name": "two"}], [{"name": "two"}], None),
    "memory": ("32", "100", "64"),
    "options": (["--disable-watch", "-o", "hashpower=17"], ["--disable-watch"], []),
    "cpu": ({"requests": "100m", "limits": "500m"}, {"requests": "50m", "limits": "50m"}, {"requests": "100m"}),
}
"""The fields of the children with the first spec, with the second one, and without any field."""


def current_fields(namespace: str) -> dict[str, Any]:
    """The fields of the children that the specs change."""
    deployment = must_get("deployments", namespace, "cache")["spec"]
    (port,) = must_get("services", namespace, "cache")["spec"]["ports"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    command, resources = container["command"], container["resources"]
    return {
        "replicas": deployment["replicas"],
        "ports": [container["ports"][0]["containerPort"], int(command[command.index("-p") + 1]), port["port"]],
        "image": container["image"],
        "imagePullPolicy": container["imagePullPolicy"],
        "imagePullSecrets": pod.get("imagePullSecrets"),
        "memory": command[command.index("-m") + 1],
        "options": command[command.index("-v") + 1 :],
        "cpu": {part: amounts["cpu"] for part, amounts in resources.items() if "cpu" in amounts},
    }


def test_setting_changing_and_removing_fields_updates_the_children(namespace: str) -> None:
    for number, spec in enumerate((FIRST, SECOND, {})):
        expected = {name: values[number] for name, values in EXPECTED.items()}

        def updated(expected: dict[str, Any] = expected) -> bool:
            assert current_fields(namespace) == expected
            return True

        kube.apply(memcached(namespace, **spec))
        eventually(updated, READY, "the children match the spec")
    wait_until_ready(namespace)
