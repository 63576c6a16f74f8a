"""The Service of a MemcachedProxy: the one address for clients."""

from memcached_api.memcachedproxy.types import MemcachedProxySpec, Service
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired.deployment import APP_NAME, COMPONENT, PORT_NAME
from memcached_operator.parts.workloads import children


def service(cr: Object, spec: MemcachedProxySpec) -> Object:
    """Build the Service."""
    given = spec.service or Service()
    # The target is a name, so that pods of an earlier port are reached until they are replaced.
    port = {"name": PORT_NAME, "port": spec.port, "protocol": "TCP", "targetPort": PORT_NAME}
    content: Object = {"type": "ClusterIP", "externalIPs": [], "ports": [port]}
    if given.traffic_distribution is not None:
        content["trafficDistribution"] = given.traffic_distribution
    built = children.service(cr, APP_NAME, COMPONENT, content)
    return children.with_metadata(built, given.labels, given.annotations)
