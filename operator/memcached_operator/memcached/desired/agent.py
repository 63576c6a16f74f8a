"""The agent of a Memcached, and what it needs in slots: the annotations of the pod, and a state that survives it."""

from collections.abc import Iterator
from typing import Final

from memcached_api.memcached.types import MemcachedSpec, has_insight, is_stable, serves_https
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired import extstore, secrets
from memcached_operator.parts import agent as shared
from memcached_operator.parts.agent import HTTPS_OPTION, MOUNT_PATH, PROBE_TIMEOUT, PROBES_PORT_NAME

INSIGHT_OPTION: Final = "--insight"

STATE_VOLUME: Final = "agent-state"
STATE_PATH: Final = "/run/memcached-agent"
STATE_SIZE: Final = "1Mi"
"""For what the agent must know after a restart."""

SLOT_OPTIONS: Final = (f"--annotations-file={MOUNT_PATH}/annotations", f"--state-directory={STATE_PATH}")
READINESS_PERIOD: Final = 5


def agent(spec: MemcachedSpec, image: str, *options: str) -> Object:
    """Build the container. `options`: further ones of the agent."""
    all_options: list[str] = [
        shared.address_option(secrets.local_port(spec)),
        *secrets.agent_options(spec),
        *([HTTPS_OPTION] if serves_https(spec) else []),
        *([INSIGHT_OPTION] if has_insight(spec) else []),
        *(SLOT_OPTIONS if is_stable(spec) else []),
        *(extstore.AGENT_OPTIONS if spec.cache.extstore is not None else []),
        *options,
    ]
    disk = [] if spec.cache.extstore is None else [extstore.MOUNT]
    state = [{"name": STATE_VOLUME, "mountPath": STATE_PATH}] if is_stable(spec) else []
    mounts = [*secrets.mounts(spec), *state, *disk]
    built = shared.agent(image, all_options, spec.agent and spec.agent.resources, mounts)
    return {**built, "readinessProbe": _readiness_probe()} if is_stable(spec) else built


def volumes(spec: MemcachedSpec, *items: Object) -> Iterator[Object]:
    """Build the volume with the annotations of the pod, and one for the state of the agent. `items`: further files."""
    yield shared.volume(*items)
    if is_stable(spec):
        yield {"name": STATE_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": STATE_SIZE}}


def _readiness_probe() -> Object:
    return {
        "httpGet": {"path": "/readyz", "port": PROBES_PORT_NAME},
        "periodSeconds": READINESS_PERIOD,
        "timeoutSeconds": PROBE_TIMEOUT,
        "failureThreshold": 2,  # one lost probe, as on a busy node, must not make a pod unready
    }
