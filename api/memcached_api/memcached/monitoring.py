"""The part of a Memcached's spec about metrics."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memcached_api.scheduling import Labels

METRICS_PORT: Final = 9150
"""The port of the agent's metrics, which prometheus/memcached_exporter uses too."""
PROBES_PORT: Final = 9151
"""The port of the agent's probes, for the kubelet."""
AGENT_PORTS: Final = (METRICS_PORT, PROBES_PORT)
"""The ports on which the agent listens in each pod that has one."""

MAX_INTERVAL_LENGTH: Final = 32


class PodMonitor(msgspec.Struct, frozen=True, rename="camel"):
    """A PodMonitor, through which the Prometheus operator finds the pods."""

    enabled: bool | None = None
    """Whether there is a PodMonitor. If absent, true. Without the API `monitoring.coreos.com`, there is none; it is
    created when the API appears."""

    interval: Annotated[str, Meta(min_length=1, max_length=MAX_INTERVAL_LENGTH)] | None = None
    """Time between two scrapes, such as `30s` or `1m30s`. If absent, Prometheus' own default."""

    labels: Labels = {}
    """Labels of the PodMonitor, by which a Prometheus selects it. Those that the operator sets are denied."""


class Rules(msgspec.Struct, frozen=True, rename="camel"):
    """A PrometheusRule with the alerts of docs/alerts.md."""

    enabled: bool | None = None
    """Whether there is a PrometheusRule. If absent, true."""

    labels: Labels = {}
    """Labels of the PrometheusRule, by which a Prometheus selects it."""


class MonitoringTLS(msgspec.Struct, frozen=True, rename="camel"):
    """HTTPS for the metrics, with the certificate of `tls`."""

    enabled: bool | None = None
    """Whether the agent serves the metrics only over HTTPS. If absent, true."""


class Monitoring(msgspec.Struct, frozen=True, rename="camel"):
    """Metrics of each memcached server, with the names of prometheus/memcached_exporter."""

    enabled: bool | None = None
    """Whether an agent in each pod serves metrics on port 9150. If absent, true."""

    pod_monitor: PodMonitor | None = None
    """A PodMonitor for the Prometheus operator. If absent, there is none; `{}` creates one."""

    rules: Rules | None = None
    """Alerts about this cache, for the Prometheus operator. If absent, there are none; `{}` creates them."""

    tls: MonitoringTLS | None = None
    """HTTPS for the metrics, with the certificate of `tls`. If absent, HTTP; `{}` enables it."""


def is_enabled(section: Monitoring | PodMonitor | Rules | MonitoringTLS | None) -> bool:
    """Whether a section of the spec is present and not disabled."""
    return section is not None and section.enabled is not False
