"""The Service of a Memcached: headless, because clients distribute keys over the pods themselves."""

from memcached_api.memcached.placing import ServiceMetadata
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.deployment import APP_NAME, COMPONENT, PORT_NAME
from memcached_operator.workloads import children


def service(cr: Object, spec: MemcachedSpec) -> Object:
    """Build the headless Service: its DNS name has one address per ready pod."""
    port = {"name": PORT_NAME, "port": spec.container_port, "protocol": "TCP", "targetPort": PORT_NAME}
    built = children.service(cr, APP_NAME, COMPONENT, {"clusterIP": "None", "ports": [port]})
    given = spec.service or ServiceMetadata()
    return children.with_metadata(built, given.labels, given.annotations)
