"""The Deployment of a Memcached.

The pod template is stable across releases: for the same spec, every later release must build an identical template.
Otherwise an upgrade of the operator restarts all caches (docs/decisions/template-stability.md). The golden files check
this.
"""

from typing import Any

from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.resources import requirements
from memcached_operator.workloads import children

APP_NAME = "memcached"
COMPONENT = "cache"
CONTAINER = "memcached"
PORT_NAME = "memcached"

USER = 1001
"""Numeric, non-root user and group of the container. The image does not need to define them."""

DRAIN_SECONDS = 5
"""Seconds from the start of a pod's termination to SIGTERM. memcached closes client connections ~1 s after SIGTERM."""

LIVENESS_DELAY, LIVENESS_PERIOD, READINESS_PERIOD = 30, 10, 5
"""Seconds. The probes open a TCP connection, which succeeds even while memcached is at its connection limit."""


def deployment(cr: Object, spec: MemcachedSpec, image: str) -> Object:
    """Build the Deployment: `spec.size` non-root pods of `image` with a read-only root file system."""
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
    """The command line. Flags and values are separate arguments, because memcached parses `-m=64` as 0."""
    return [
        "memcached",
        "-m",
        str(megabytes(spec.cache.memory)),
        "-p",
        str(spec.container_port),
        "-U",  # disables UDP, which older images enable; it allows amplification attacks
        "0",
        "-o",
        "modern",
        "-v",
    ]
