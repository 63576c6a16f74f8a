"""The PodMonitor of an object, through which the Prometheus operator finds the pods' metrics."""

from typing import Final

from memcached_api.shared.monitoring import Monitoring, PodMonitor, is_enabled
from memcached_operator.kube.resource import POD_MONITORS, Object
from memcached_operator.parts.agent import METRICS_PORT_NAME
from memcached_operator.parts.dns import host
from memcached_operator.parts.tls import CA
from memcached_operator.parts.workloads import children

CACHE_LABEL: Final = {
    "action": "replace",
    "sourceLabels": ["__meta_kubernetes_pod_label_app_kubernetes_io_instance"],
    "targetLabel": "cache",
}
"""Adds the name of the object to each sample. `action` is the default, which the API server writes."""


def wanted_pod_monitor(monitoring: Monitoring | None) -> PodMonitor | None:
    """The PodMonitor that the spec asks for, or None."""
    monitor = monitoring and monitoring.pod_monitor
    return monitor if is_enabled(monitoring) and is_enabled(monitor) else None


def pod_monitor(cr: Object, app_name: str, component: str, monitor: PodMonitor, https: Object) -> Object:
    """Build the PodMonitor. `https`: the fields of its endpoint for HTTPS; empty for HTTP."""
    interval = {} if monitor.interval is None else {"interval": monitor.interval}
    content = {
        "selector": {"matchLabels": children.selector(cr, app_name)},
        "podMetricsEndpoints": [{"port": METRICS_PORT_NAME, **interval, **https, "relabelings": [CACHE_LABEL]}],
    }
    built = children.child(POD_MONITORS, cr, app_name, component, spec=content)
    return children.with_metadata(built, monitor.labels, {})


def https_fields(cr: Object, secret: str, domain: str) -> Object:
    """The fields with which Prometheus verifies the agents: the CA in the Secret, the name of the Service.

    It connects to the addresses of pods, which no certificate contains. `secret`: that of the certificate. `domain`:
    the DNS domain of the cluster.
    """
    ca = {"secret": {"name": secret, "key": CA}}
    return {"scheme": "https", "tlsConfig": {"ca": ca, "serverName": host(cr, domain)}}
