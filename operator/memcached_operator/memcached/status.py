"""The status of a Memcached, from its Deployment and its pods."""

from datetime import datetime

from memcached_api.memcached.effective import effective
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.types import check
from memcached_api.quantity import canonical
from memcached_operator.kind import DesiredStatus, Outcome, Snapshot
from memcached_operator.kube import labels
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.desired.deployment import APP_NAME
from memcached_operator.workloads.deployment import DEPLOYMENT
from memcached_operator.workloads.workload import workload_state

PULL_SECRETS_FIELD = "spec.imagePullSecrets"
"""The field that names image pull secrets."""

RESUME = "set spec.rollout.paused to false"
"""The remedy for a pause."""


def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
    """The `MemcachedStatus`. `now` is used only to decide how long a crash is reported."""
    meta = snapshot.cr["metadata"]
    workload = workload_state(DEPLOYMENT, snapshot, outcome, now, pull_secrets_field=PULL_SECRETS_FIELD, resume=RESUME)
    return DesiredStatus(
        {
            "observedGeneration": meta.get("generation", 0),
            "replicas": workload.rollout.replicas,
            "readyReplicas": workload.rollout.ready,
            "selector": labels.selector(APP_NAME, meta["name"]),
            "nodes": workload.nodes,
            **_cache(snapshot.cr),
            "conditions": workload.conditions,
        },
        workload.requeue_after,
    )


def _cache(cr: Object) -> dict[str, Object]:
    """The `CacheStatus`. An invalid spec leaves the pods as they are, and so the previous one."""
    spec, errors = check(cr)
    if spec is None or errors:
        before = nested_map(cr, "status").get("cache")
        return {} if before is None else {"cache": before}
    found = effective(spec)
    return {
        "cache": {
            "memory": canonical(f"{megabytes(found.memory)}Mi"),
            "maxItemSize": canonical(f"{found.item_size // 1024}Ki"),
            "maxConnections": found.settings.connections,
            "threads": found.settings.threads,
        }
    }
