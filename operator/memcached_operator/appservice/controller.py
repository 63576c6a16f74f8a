"""What the kind AppService is to the engine: the resources it owns, and its two pure functions."""

from memcached_api.appservice import GROUP, KIND, PLURAL, VERSION, decode_spec, faults
from memcached_api.faults import summary
from memcached_operator.appservice.desired.deployment import APP_NAME, deployment
from memcached_operator.appservice.desired.service import service
from memcached_operator.appservice.status import status
from memcached_operator.status.conditions import MESSAGE_LIMIT
from memcached_operator.kind import InvalidSpecError, Kind, Observed
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource

APPSERVICES = Resource(GROUP, VERSION, KIND, PLURAL)


def appservice() -> Kind:
    """The kind."""
    return Kind(APPSERVICES, APP_NAME, (DEPLOYMENTS, SERVICES), desired, status)


def desired(cr: Object, observed: Observed) -> list[Object]:
    """The children of an AppService: a Deployment and, where it has ports, a Service."""
    found = faults(cr)
    if found:
        raise InvalidSpecError(summary(found, MESSAGE_LIMIT))
    spec = decode_spec(cr)
    served = [service(cr, spec, observed.child(SERVICES))] if spec.ports else []
    return [deployment(cr, spec), *served]
