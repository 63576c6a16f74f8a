"""The Service of an AppService, of type NodePort."""

from memcached_api.appservice.types import AppServiceSpec
from memcached_operator.appservice.desired.deployment import APP_NAME, COMPONENT
from memcached_operator.appservice.desired.ports import service_ports
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.parts.workloads import children


def service(cr: Object, spec: AppServiceSpec, live: Object | None) -> Object:
    """Build the Service. `live` is the existing Service, whose node ports are kept."""
    ports = service_ports(spec.ports, nested_map(live or {}, "spec").get("ports") or ())
    return children.service(cr, APP_NAME, COMPONENT, {"type": "NodePort", "ports": ports})
