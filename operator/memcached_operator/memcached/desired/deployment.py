"""The Deployment of a Memcached.

Its pod template is a promise: for the same spec, every later release must build it byte for byte the same, or all
caches restart on the day the operator is upgraded (docs/decisions/template-stability.md). The goldens hold it.
"""

from typing import Any

from memcached_api.memcached import MemcachedSpec
from memcached_api.memory import megabytes
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.resources import requirements
from memcached_operator.workloads import children

APP_NAME = "memcached"
COMPONENT = "cache"
CONTAINER = "memcached"
PORT_NAME = "memcached"

USER = 1001
"""Numeric user and group of the container: not root, and none that an image needs to know."""

DRAIN_SECONDS = 5
"""Seconds between a pod's removal from the endpoints and SIGTERM: memcached resets its clients on SIGTERM (~1 s)."""

LIVENESS_DELAY, LIVENESS_PERIOD, READINESS_PERIOD = 30, 10, 5
"""Seconds; a TCP connect each, which passes even while memcached is at its connection limit."""


def deployment(cr: Object, spec: MemcachedSpec, image: str) -> Object:
    """Build the Deployment: `spec.size` pods of `image`, none of them root, none of them writing to disk."""
    return children.deployment(cr, APP_NAME, COMPONENT, spec.size, _pod(spec, image))


def _pod(spec: MemcachedSpec, image: str) -> Object:
    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(spec, image)],
    }
    if spec.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": secret.name} for secret in spec.image_pull_secrets]
    return pod


def _container(spec: MemcachedSpec, image: str) -> Object:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image,
        "command": command(spec),
        "ports": [{"name": PORT_NAME, "containerPort": spec.container_port, "protocol": "TCP"}],
        "resources": requirements(spec),
        "livenessProbe": {
            "tcpSocket": {"port": PORT_NAME},
            "initialDelaySeconds": LIVENESS_DELAY,
            "periodSeconds": LIVENESS_PERIOD,
        },
        "readinessProbe": {"tcpSocket": {"port": PORT_NAME}, "periodSeconds": READINESS_PERIOD},
        "lifecycle": {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    if spec.image_pull_policy is not None:
        container["imagePullPolicy"] = spec.image_pull_policy
    return container


def command(spec: MemcachedSpec) -> list[str]:
    """The command line; values stand apart from their flags, because memcached reads `-m=64` as 0."""
    return [
        "memcached",
        "-m",
        str(megabytes(spec.cache.memory)),
        "-p",
        str(spec.container_port),
        "-U",  # an older image would serve UDP, which amplifies forged requests
        "0",
        "-o",
        "modern",
        "-v",
    ]
