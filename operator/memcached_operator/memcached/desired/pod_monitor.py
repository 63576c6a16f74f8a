"""The PodMonitor of a Memcached, through which the Prometheus operator finds the pods' metrics."""

from memcached_api.memcached.monitoring import PodMonitor, is_enabled
from memcached_api.memcached.types import MemcachedSpec, needs_agent
from memcached_operator.kube.resource import POD_MONITORS, Object
from memcached_operator.memcached.desired.agent import METRICS_PORT_NAME
from memcached_operator.memcached.desired.pods import APP_NAME, COMPONENT
from memcached_operator.workloads import children


def wanted_pod_monitor(spec: MemcachedSpec) -> PodMonitor | None:
    """The PodMonitor that the spec asks for, or None."""
    given = spec.monitoring and spec.monitoring.pod_monitor
    return given if needs_agent(spec) and is_enabled(given) else None


def pod_monitor(cr: Object, given: PodMonitor) -> Object:
    """Build the PodMonitor."""
    interval = {} if given.interval is None else {"interval": given.interval}
    content = {
        "selector": {"matchLabels": children.selector(cr, APP_NAME)},
        "podMetricsEndpoints": [{"port": METRICS_PORT_NAME, **interval}],
    }
    built = children.child(POD_MONITORS, cr, APP_NAME, COMPONENT, spec=content)
    return children.with_metadata(built, given.labels, {})
