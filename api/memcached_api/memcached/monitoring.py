"""The part of a Memcached's spec about the agent, a container beside memcached, and about metrics, its first duty."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.kubernetes import ResourceRequirements
from memcached_api.scheduling import Labels
from memcached_api.values import is_object

METRICS_PORT: Final = 9150
"""The port of the agent's metrics, which prometheus/memcached_exporter uses too."""

MAX_INTERVAL_LENGTH: Final = 32

AGENT_CPU: Final = "10m"
AGENT_REQUEST: Final = "24Mi"
AGENT_LIMIT: Final = "48Mi"
"""Default resources of the agent: it needs about 16 MiB."""


class PodMonitor(msgspec.Struct, frozen=True, rename="camel"):
    """A PodMonitor, through which the Prometheus operator finds the pods."""

    enabled: bool | None = None
    """Whether there is a PodMonitor. If absent, true. Without the API `monitoring.coreos.com`, there is none; it is
    created when the API appears."""

    interval: Annotated[str, Meta(min_length=1, max_length=MAX_INTERVAL_LENGTH)] | None = None
    """Time between two scrapes, such as `30s` or `1m30s`. If absent, Prometheus' own default."""

    labels: Labels = {}
    """Labels of the PodMonitor, by which a Prometheus selects it. Those that the operator sets are denied."""


class Monitoring(msgspec.Struct, frozen=True, rename="camel"):
    """Metrics of each memcached server, with the names of prometheus/memcached_exporter."""

    enabled: bool | None = None
    """Whether an agent in each pod serves metrics on port 9150. If absent, true. A change replaces the pods."""

    pod_monitor: PodMonitor | None = None
    """A PodMonitor for the Prometheus operator. If absent, there is none; `{}` creates one."""


class Agent(msgspec.Struct, frozen=True, rename="camel"):
    """The agent, a container beside memcached. There is one only if another field, such as `monitoring`, needs it."""

    image: Annotated[str, Meta(min_length=1, max_length=MAX_IMAGE_LENGTH)] | None = None
    """Container image of the agent. If absent when an agent is first needed, the mutating webhook sets the operator's
    own image, so that a later release of the operator does not restart the cache. A change replaces the pods."""

    resources: ResourceRequirements | None = None
    """Compute resources of the agent. Resources that are not set have defaults: requests of `cpu: 10m` and `memory:
    24Mi`, and a memory limit of `48Mi`. A change replaces the pods."""


def asks_for_agent(spec: Mapping[str, Any]) -> bool:
    """Whether a spec that is not decoded, and may be invalid, needs an agent."""
    monitoring = spec.get("monitoring")
    return is_object(monitoring) and monitoring.get("enabled") is not False


def is_enabled(given: Monitoring | PodMonitor | None) -> bool:
    """Whether something that can be switched off is present and not switched off."""
    return given is not None and given.enabled is not False
