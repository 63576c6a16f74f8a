"""The Service of an AppService: every node answers on its ports."""

from memcached_api.appservice import AppServiceSpec
from memcached_operator.appservice.desired.deployment import APP_NAME, COMPONENT
from memcached_operator.appservice.desired.ports import service_ports
from memcached_operator.engine import labels
from memcached_operator.engine.resource import SERVICES, Object, entries


def service(cr: Object, spec: AppServiceSpec, live: Object | None) -> Object:
    """Build the Service; `live` is the one there is, whose node ports stay."""
    name = cr["metadata"]["name"]
    selector = labels.selector_labels(APP_NAME, name)
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": name,
            "namespace": cr["metadata"]["namespace"],
            "labels": selector | {labels.COMPONENT: COMPONENT},
        },
        "spec": {
            "type": "NodePort",
            "selector": selector,
            "ports": service_ports(spec.ports, entries(live or {}, "spec", "ports")),
        },
    }
