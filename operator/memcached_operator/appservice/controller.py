"""The AppService controller: the resources it owns, and the pure functions for its desired state and status."""

from memcached_api.appservice.types import GROUP, KIND, PLURAL, VERSION, decode_spec, validate
from memcached_api.validation.field_errors import summary
from memcached_operator.appservice.desired.deployment import APP_NAME, deployment
from memcached_operator.appservice.desired.service import service
from memcached_operator.appservice.status import status
from memcached_operator.kind import InvalidSpecError, Kind, Snapshot
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, Resource
from memcached_operator.status.conditions import MAX_MESSAGE_LENGTH

APPSERVICES = Resource(GROUP, VERSION, KIND, PLURAL)


def appservice() -> Kind:
    """The AppService kind."""
    return Kind(APPSERVICES, APP_NAME, (DEPLOYMENTS, SERVICES), desired, status)


def desired(cr: Object, snapshot: Snapshot) -> list[Object]:
    """The children of an AppService: a Deployment and, if the spec has ports, a Service."""
    errors = validate(cr)
    if errors:
        raise InvalidSpecError(summary(errors, MAX_MESSAGE_LENGTH))
    spec = decode_spec(cr)
    services = [service(cr, spec, snapshot.child(SERVICES))] if spec.ports else []
    return [deployment(cr, spec), *services]
