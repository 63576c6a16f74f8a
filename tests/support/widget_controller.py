"""The controller of the throw-away kind of widget.py: the folder that a new kind would have, in one module.

Its children are everything that the Deployment kinds do not use: a StatefulSet, two Services, a ConfigMap without a
spec, a PodDisruptionBudget, and an object of an API that a cluster may lack.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memcached_operator.kind import DesiredStatus, Outcome, Plan, ReconciledKind, Snapshot, invalid, kept_violations
from memcached_operator.kube import labels
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    STATEFULSETS,
    Object,
    Resource,
)
from memcached_operator.workloads import children
from memcached_operator.workloads.rollout import Rollout, counted
from memcached_operator.workloads.rules import OwnContainer, PodRules
from memcached_operator.workloads.statefulset import STATEFULSET, with_progress
from memcached_operator.workloads.workload import workload_state
from support.widget import WIDGET, WidgetSpec

WIDGETS = Resource(WIDGET.group, WIDGET.versions[0], WIDGET.name, WIDGET.plural)
MONITORS = Resource("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")
APP_NAME, COMPONENT = "widget", "app"
OWNS = (STATEFULSETS, SERVICES, CONFIG_MAPS, POD_DISRUPTION_BUDGETS, MONITORS)
"""The resources of its children."""
PODS_SUFFIX = "-pods"
"""Of the name of the Service of the pods."""
RULES = PodRules("Widget", {"app": OwnContainer("spec.image", "use another image", "use another image")})
"""The only container, and the field that governs it."""


def widget() -> ReconciledKind:
    """The Widget kind."""
    return ReconciledKind(WIDGETS, APP_NAME, OWNS, (STATEFULSET,), plan, status, optional=(MONITORS,), owners=owners)


def owners(_: Resource, name: str) -> Iterator[tuple[str, int]]:
    """The names of the Widgets that can have a child of this name, and the least size of each."""
    yield name, 0
    if name.endswith(PODS_SUFFIX):
        yield name.removesuffix(PODS_SUFFIX), 0


def plan(snapshot: Snapshot, _: datetime) -> Plan:
    """The children of a Widget."""
    cr = snapshot.cr
    spec, errors = WIDGET.check(cr)
    if spec is None:
        return invalid(errors)
    found = [_statefulset(cr, spec), *_services(cr), _child(POD_DISRUPTION_BUDGETS, cr, spec=_budget(cr))]
    if spec.settings:
        found.append(_child(CONFIG_MAPS, cr, data={"settings": spec.settings}))
    if MONITORS not in snapshot.missing:
        monitor = {"selector": {"matchLabels": children.selector(cr, APP_NAME)}, "endpoints": [{"port": "app"}]}
        found.append(_child(MONITORS, cr, spec=monitor))
    return Plan(tuple(found), notices=kept_violations(errors))


def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
    """The `WidgetStatus`."""
    meta = snapshot.cr["metadata"]
    found = statefulset_rollout(snapshot, now)
    state = workload_state(
        found, snapshot, outcome, now, rules=RULES.within(snapshot.child(STATEFULSETS)), resume="no remedy"
    )
    content = {
        "observedGeneration": meta["generation"],
        "replicas": state.rollout.replicas,
        "readyReplicas": state.rollout.ready,
        "selector": labels.selector(APP_NAME, meta["name"]),
        "nodes": state.nodes,
        "conditions": state.conditions,
    }
    return DesiredStatus(content, state.requeue_after)


def statefulset_rollout(snapshot: Snapshot, now: datetime) -> Rollout:
    """The rollout of a StatefulSet that updates its pods itself, from its counts and from times in its pods."""
    live = snapshot.child(STATEFULSETS)
    counts = counted(STATEFULSETS.kind, live)
    return counts if live is None else with_progress(counts, live, snapshot, now)


def _statefulset(cr: Object, spec: WidgetSpec) -> Object:
    pods = {"containers": [{"name": "app", "image": spec.image}]}
    found = children.statefulset(cr, APP_NAME, COMPONENT, spec.size, pods, _name(cr) + PODS_SUFFIX)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    return {**found, "spec": {**found["spec"], "podManagementPolicy": "Parallel", "updateStrategy": strategy}}


def _services(cr: Object) -> list[Object]:
    ports = [{"name": "app", "port": 80, "protocol": "TCP", "targetPort": 80}]
    return [
        children.service(cr, APP_NAME, COMPONENT, {"ports": ports}),
        children.service(cr, APP_NAME, COMPONENT, {"clusterIP": "None", "ports": ports}, name=_name(cr) + PODS_SUFFIX),
    ]


def _budget(cr: Object) -> Object:
    return {"maxUnavailable": 1, "selector": {"matchLabels": children.selector(cr, APP_NAME)}}


def _child(resource: Resource, cr: Object, **content: Any) -> Object:
    return children.child(resource, cr, APP_NAME, COMPONENT, **content)


def _name(cr: Object) -> str:
    return cr["metadata"]["name"]
