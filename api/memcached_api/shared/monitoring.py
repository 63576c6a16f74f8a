"""The part of a spec about metrics."""

from typing import Annotated, Final, Protocol

import msgspec
from msgspec import Meta

from memcached_api.effects import KEEPS, REPLACES
from memcached_api.scheduling import Labels

METRICS_PORT: Final = 9150
"""The port of the agent's metrics, which prometheus/memcached_exporter uses too."""
PROBES_PORT: Final = 9151
"""The port of the agent's probes, for the kubelet."""
AGENT_PORTS: Final = (METRICS_PORT, PROBES_PORT)
"""The ports on which the agent listens in each pod that has one."""

MAX_INTERVAL_LENGTH: Final = 32


SWITCHES: Final = REPLACES.by(lambda _: True)
"""The effect of `enabled` of a section. It has no value in a section that is disabled."""


class PodMonitor(msgspec.Struct, frozen=True, rename="camel"):
    """A PodMonitor, through which the Prometheus operator finds the pods."""

    enabled: Annotated[bool, KEEPS] | None = None
    """Whether to create a PodMonitor. Defaults to true. It is created as soon as the cluster serves
    `monitoring.coreos.com`."""

    interval: Annotated[str, Meta(min_length=1, max_length=MAX_INTERVAL_LENGTH), KEEPS] | None = None
    """Time between two scrapes, such as `30s` or `1m30s`. Defaults to Prometheus' own setting."""

    labels: Annotated[Labels, KEEPS] = {}
    """Labels of the PodMonitor, by which Prometheus selects it. Keys that the operator sets are rejected."""


class Monitoring(msgspec.Struct, frozen=True, rename="camel"):
    """Metrics of each memcached server, under the names that prometheus/memcached_exporter uses."""

    enabled: Annotated[bool, SWITCHES] | None = None
    """Whether an agent in each pod serves metrics on port 9150. Defaults to true."""

    pod_monitor: PodMonitor | None = None
    """A PodMonitor for the Prometheus operator. `{}` creates it."""


class Section(Protocol):
    """A section of a spec that can be disabled without being removed."""

    @property
    def enabled(self) -> bool | None:
        """Whether the feature is on. Defaults to true."""


def is_enabled(section: Section | None) -> bool:
    """Whether a section of the spec is present and not disabled."""
    return section is not None and section.enabled is not False
