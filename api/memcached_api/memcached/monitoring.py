"""The part of a Memcached's spec about metrics."""

from typing import Annotated

import msgspec

from memcached_api.effects import KEEPS
from memcached_api.scheduling import Labels
from memcached_api.shared import monitoring
from memcached_api.shared.monitoring import SWITCHES


class Rules(msgspec.Struct, frozen=True, rename="camel"):
    """A PrometheusRule with the alerts of docs/alerts.md."""

    enabled: Annotated[bool, KEEPS] | None = None
    """Whether to create a PrometheusRule. Defaults to true."""

    labels: Annotated[Labels, KEEPS] = {}
    """Labels of the PrometheusRule, by which Prometheus selects it."""


class MonitoringTLS(msgspec.Struct, frozen=True, rename="camel"):
    """HTTPS for the metrics, with the certificate of `tls`."""

    enabled: Annotated[bool, SWITCHES] | None = None
    """Whether the agent serves the metrics only over HTTPS. Defaults to true."""


class Insight(msgspec.Struct, frozen=True, rename="camel"):
    """Predictions of the hit ratio with more or less memory (docs/insight.md)."""

    enabled: Annotated[bool, SWITCHES] | None = None
    """Whether the agent predicts the hit ratio. Defaults to true."""


class Monitoring(monitoring.Monitoring, frozen=True, rename="camel"):
    """Metrics of each memcached server, under the names that prometheus/memcached_exporter uses."""

    rules: Rules | None = None
    """Alerts about this cache for the Prometheus operator. `{}` creates them."""

    tls: MonitoringTLS | None = None
    """HTTPS for the metrics, with the certificate of `tls`. `{}` enables it; if absent, the agent serves HTTP."""

    insight: Insight | None = None
    """Predicted hit ratios with more memory (docs/insight.md). `{}` enables them."""
