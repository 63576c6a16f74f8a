"""The status of a Memcached, from its Deployment and its pods."""

from datetime import datetime

from memcached_operator.kind import DesiredStatus, Snapshot
from memcached_operator.kube import labels
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.deployment import APP_NAME
from memcached_operator.workloads.workload import workload_of

PULL_SECRETS_FIELD = "spec.imagePullSecrets"
"""The field that names image pull secrets."""


def status(cr: Object, snapshot: Snapshot, now: datetime) -> DesiredStatus:
    """The `MemcachedStatus`. `now` is used only to decide how long a crash is reported."""
    workload = workload_of(cr, snapshot, now, PULL_SECRETS_FIELD)
    return DesiredStatus(
        {
            "observedGeneration": cr["metadata"].get("generation", 0),
            "replicas": workload.rollout.replicas,
            "readyReplicas": workload.rollout.ready,
            "selector": labels.selector(APP_NAME, cr["metadata"]["name"]),
            "nodes": workload.nodes,
            "conditions": workload.conditions,
        },
        workload.requeue_after,
    )
