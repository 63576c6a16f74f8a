"""The AppService controller: the resources it owns, and its two pure functions, plan and status."""

from datetime import datetime

from memcached_api.appservice.types import GROUP, KIND, PLURAL, VERSION, check
from memcached_operator.appservice.desired.deployment import APP_NAME, deployment
from memcached_operator.appservice.desired.service import service
from memcached_operator.appservice.status import status
from memcached_operator.engine.kind import Plan, ReconciledKind, invalid, kept_violations, once_per_spec
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Resource
from memcached_operator.parts.workloads.children import inheriting
from memcached_operator.parts.workloads.deployment import DEPLOYMENT
from memcached_operator.world.snapshot import Snapshot

APPSERVICES = Resource(GROUP, VERSION, KIND, PLURAL)

checked = once_per_spec(check)


def appservice() -> ReconciledKind:
    """The AppService kind."""
    return ReconciledKind(
        resource=APPSERVICES,
        app_name=APP_NAME,
        owns=(DEPLOYMENTS, SERVICES),
        workloads=(DEPLOYMENT,),
        plan=plan,
        status=status,
    )


def plan(snapshot: Snapshot, _: datetime) -> Plan:
    """The children of an AppService: a Deployment and, if the spec has ports, a Service."""
    cr = snapshot.cr
    spec, errors = checked(cr)
    if spec is None:
        return invalid(errors)
    services = [service(cr, spec, snapshot.child(SERVICES))] if spec.ports else []
    children = inheriting((deployment(cr, spec), *services), spec.inherited_metadata)
    return Plan(children, notices=kept_violations(errors))
