"""The status of an AppService, from its Deployment, its Service and its pods."""

from datetime import datetime

from memcached_operator.appservice.containers import CONTAINER, DISRUPTIONS, LACKS, SCHEDULING
from memcached_operator.appservice.desired.deployment import APP_NAME
from memcached_operator.engine.kind import DesiredStatus, Outcome
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import labels
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, nested_list, nested_map
from memcached_operator.parts.workloads.deployment import deployment_rollout
from memcached_operator.parts.workloads.workload import workload_state
from memcached_operator.world.snapshot import Snapshot

COUNTS = ("replicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
"""Fields that are copied from the Deployment's status."""

RESUME = "run kubectl rollout resume -n {} deployment {}"
"""The remedy for a pause. An AppService has no field for it, so a user has paused the Deployment."""


def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
    """The `AppServiceStatus`. `now` is used only to decide how long a crash is reported."""
    meta = snapshot.cr["metadata"]
    live = snapshot.child(DEPLOYMENTS)
    rules = PodRules(
        "AppService", {meta["name"]: CONTAINER}, scheduling=SCHEDULING, disruptions=DISRUPTIONS, lacks=LACKS
    ).within(live)
    resume = RESUME.format(meta["namespace"], meta["name"])
    workload = workload_state(deployment_rollout(live), snapshot, outcome, now, rules=rules, resume=resume)
    counted = nested_map(live or {}, "status")
    return DesiredStatus(
        {
            "observedGeneration": meta.get("generation", 0),
            **{name: counted.get(name, 0) for name in COUNTS},
            "updatedReplicas": workload.rollout.updated,
            "selector": labels.selector(APP_NAME, meta["name"]),
            "nodes": workload.nodes,
            "nodePorts": node_ports(snapshot.child(SERVICES)),
            "conditions": workload.conditions,
        },
        workload.requeue_after,
    )


def node_ports(service: Object | None) -> list[dict[str, str | int]]:
    """The node ports of a Service."""
    return [
        {name: port[name] for name in ("name", "protocol", "port", "nodePort") if name in port}
        for port in nested_list(service or {}, "spec", "ports")
        if port.get("nodePort")
    ]
