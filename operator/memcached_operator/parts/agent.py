"""The agent: a container beside memcached that serves its metrics, and makes it reload certificates and passwords.

The pod template is stable across releases, as in `memcached/desired/pods.py`: a later duty of the agent adds to it only
where the spec asks for this duty.
"""

from collections.abc import Iterable
from typing import Final

from memcached_api.kubernetes import ResourceRequirements
from memcached_api.shared.monitoring import METRICS_PORT, PROBES_PORT
from memcached_api.shared.resources import agent_requirements
from memcached_operator.kube.resource import Object
from memcached_operator.parts.pods import RESTRICTED

CONTAINER: Final = "agent"
METRICS_PORT_NAME: Final = "metrics"
PROBES_PORT_NAME: Final = "probes"
HTTPS_OPTION: Final = "--metrics-tls"

VOLUME: Final = "podinfo"
MOUNT_PATH: Final = "/etc/podinfo"
"""A directory with the file `annotations`: the annotations of the pod, which can change while it runs."""

LIVENESS_PERIOD: Final = 10
PROBE_TIMEOUT: Final = 5
"""Seconds. The default timeout, 1 s, is short on a busy node, because the agent requests little CPU. The probe succeeds
while the agent works, also if memcached does not: its own probes and metrics say so."""


def agent(
    image: str, options: Iterable[str], resources: ResourceRequirements | None, mounts: Iterable[Object]
) -> Object:
    """Build the container. `options`: those of the agent, `memcached_agent.options` describes them."""
    return {
        "name": CONTAINER,
        "image": image,
        "command": ["memcached-agent", *options],
        "ports": [
            {"name": METRICS_PORT_NAME, "containerPort": METRICS_PORT, "protocol": "TCP"},
            {"name": PROBES_PORT_NAME, "containerPort": PROBES_PORT, "protocol": "TCP"},
        ],
        "resources": agent_requirements(resources),
        # No readiness probe: memcached must not lose its address because of the agent. Slots, which keep it, have one.
        "livenessProbe": {
            "httpGet": {"path": "/livez", "port": PROBES_PORT_NAME},
            "periodSeconds": LIVENESS_PERIOD,
            "timeoutSeconds": PROBE_TIMEOUT,
        },
        "volumeMounts": [{"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}, *mounts],
        "securityContext": RESTRICTED,
    }


def address_option(port: int) -> str:
    """The option with the address of memcached. `port`: one without TLS."""
    return f"--memcached=127.0.0.1:{port}"


def volume(*items: Object) -> Object:
    """Build the volume with the annotations of the pod. `items`: further files."""
    annotations = {"path": "annotations", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.annotations"}}
    return {"name": VOLUME, "downwardAPI": {"items": [annotations, *items]}}


def has_agent(workload: Object) -> bool:
    """Whether the pods of a workload have an agent."""
    return _agent_of(workload) is not None


def has_https(workload: Object) -> bool:
    """Whether the agents in the pods of a workload serve their metrics over HTTPS."""
    agent = _agent_of(workload)
    return agent is not None and HTTPS_OPTION in agent.get("command", ())


def _agent_of(workload: Object) -> Object | None:
    containers = workload["spec"]["template"]["spec"]["containers"]
    return next((container for container in containers if container["name"] == CONTAINER), None)
