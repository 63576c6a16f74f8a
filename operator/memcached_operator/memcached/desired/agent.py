"""The agent: a container beside memcached that serves its metrics, and makes it reload certificates and passwords.

The pod template is stable across releases, as in pods.py: a later duty of the agent adds to it only where the spec asks
for this duty.
"""

from collections.abc import Iterator
from typing import Any, Final

from memcached_api.memcached.monitoring import METRICS_PORT, PROBES_PORT
from memcached_api.memcached.requirements import agent_requirements
from memcached_api.memcached.types import MemcachedSpec, has_insight, is_stable, serves_https
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired import secrets

CONTAINER: Final = "agent"
METRICS_PORT_NAME: Final = "metrics"
PROBES_PORT_NAME: Final = "probes"
HTTPS_OPTION: Final = "--metrics-tls"
INSIGHT_OPTION: Final = "--insight"

VOLUME: Final = "podinfo"
MOUNT_PATH: Final = "/etc/podinfo"
"""A directory with the file `annotations`: the annotations of the pod, which can change while it runs."""

STATE_VOLUME: Final = "agent-state"
STATE_PATH: Final = "/run/memcached-agent"
STATE_SIZE: Final = "1Mi"
"""For what the agent must know after a restart."""

SLOT_OPTIONS: Final = (f"--annotations-file={MOUNT_PATH}/annotations", f"--state-directory={STATE_PATH}")
READINESS_PERIOD: Final = 5
LIVENESS_PERIOD: Final = 10
PROBE_TIMEOUT: Final = 5
"""Seconds. The default timeout, 1 s, is short on a busy node, because the agent requests little CPU. The probe succeeds
while the agent works, also if memcached does not: its own probes and metrics say so."""

RESTRICTED: Final[dict[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""The security context of every container."""


def agent(spec: MemcachedSpec, image: str, *options: str) -> Object:
    """Build the container. `options`: further ones of the agent."""
    return {
        "name": CONTAINER,
        "image": image,
        "command": [
            "memcached-agent",
            f"--memcached=127.0.0.1:{secrets.local_port(spec)}",
            *secrets.agent_options(spec),
            *([HTTPS_OPTION] if serves_https(spec) else []),
            *([INSIGHT_OPTION] if has_insight(spec) else []),
            *(SLOT_OPTIONS if is_stable(spec) else []),
            *options,
        ],
        "ports": [
            {"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": PROBES_PORT_NAME, "containerPort": PROBES_PORT, "protocol": "TCP"},
        ],
        "resources": agent_requirements(spec.agent and spec.agent.resources),
        # Otherwise no readiness probe: memcached must not lose its address because of the agent. A slot keeps it.
        **({"readinessProbe": _readiness_probe()} if is_stable(spec) else {}),
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": PROBES_PORT_NAME},
            "periodSeconds": LIVENESS_PERIOD,
            "timeoutSeconds": PROBE_TIMEOUT,
        },
        "volumeMounts": [
            {"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True},
            *secrets.mounts(spec),
            *([{"name": STATE_VOLUME, "mountPath": STATE_PATH}] if is_stable(spec) else []),
        ],
        "securityContext": RESTRICTED,
    }


def volumes(spec: MemcachedSpec, *items: Object) -> Iterator[Object]:
    """Build the volume with the annotations of the pod, and one for the state of the agent. `items`: further files."""
    annotations = {"path": "annotations", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations"}}
    yield {"name": VOLUME, "downwardAPI": {"items": [annotations, *items]}}
    if is_stable(spec):
        yield {"name": STATE_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": STATE_SIZE}}


def has_agent(workload: Object) -> bool:
    """Whether the pods of a workload have an agent."""
    return _agent_of(workload) is not None


def has_https(workload: Object) -> bool:
    """Whether the agents in the pods of a workload serve their metrics over HTTPS."""
    agent = _agent_of(workload)
    return agent is not None and HTTPS_OPTION in agent.get("command", ())


def _readiness_probe() -> Object:
    return {
        "httpGet": {"path": "/readyz", "port": PROBES_PORT_NAME},
        "periodSeconds": READINESS_PERIOD,
        "timeoutSeconds": PROBE_TIMEOUT,
        "failureThreshold": 2,  # one lost probe, as on a busy node, must not make a pod unready
    }


def _agent_of(workload: Object) -> Object | None:
    containers = workload["spec"]["template"]["spec"]["containers"]
    return next((container for container in containers if container["name"] == CONTAINER), None)
