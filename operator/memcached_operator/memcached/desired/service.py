"""The Service of a Memcached: headless, because clients spread their keys over the pods themselves."""

from memcached_api.memcached import MemcachedSpec
from memcached_operator.engine import labels
from memcached_operator.engine.resource import SERVICES, Object
from memcached_operator.memcached.desired.deployment import APP_NAME, PORT_NAME


def service(cr: Object, spec: MemcachedSpec) -> Object:
    """Build the headless Service: its DNS name has one address per ready pod."""
    name = cr["metadata"]["name"]
    selector = labels.selector_labels(APP_NAME, name)
    port = {
        "name": PORT_NAME,
        "port": spec.container_port,
        "protocol": "TCP",
        "targetPort": PORT_NAME,
    }
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": name,
            "namespace": cr["metadata"]["namespace"],
            "labels": selector | {labels.COMPONENT: "cache"},
        },
        "spec": {"clusterIP": "None", "selector": selector, "ports": [port]},
    }
