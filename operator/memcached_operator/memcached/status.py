"""The status of a Memcached, from its Deployment and its pods."""

from datetime import datetime

from memcached_operator.kind import DesiredStatus, Outcome, Snapshot
from memcached_operator.kube import labels
from memcached_operator.memcached.desired.deployment import APP_NAME
from memcached_operator.workloads.deployment import DEPLOYMENT
from memcached_operator.workloads.workload import workload_state

PULL_SECRETS_FIELD = "spec.imagePullSecrets"
"""The field that names image pull secrets."""


def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
    """The `MemcachedStatus`. `now` is used only to decide how long a crash is reported."""
    meta = snapshot.cr["metadata"]
    workload = workload_state(DEPLOYMENT, snapshot, outcome, now, PULL_SECRETS_FIELD)
    return DesiredStatus(
        {
            "observedGeneration": meta.get("generation", 0),
            "replicas": workload.rollout.replicas,
            "readyReplicas": workload.rollout.ready,
            "selector": labels.selector(APP_NAME, meta["name"]),
            "nodes": workload.nodes,
            "conditions": workload.conditions,
        },
        workload.requeue_after,
    )
