"""The status of a Memcached, from its workload and its pods."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from memcached_api.memcached.effective import effective
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.rules.spec import STABLE
from memcached_api.memcached.types import MemcachedSpec, is_stable
from memcached_api.quantity import canonical
from memcached_operator.kind import DesiredStatus, Outcome, Snapshot
from memcached_operator.kube import labels
from memcached_operator.kube.resource import STATEFULSETS, Object, nested_map
from memcached_operator.memcached.desired.addresses import servers
from memcached_operator.memcached.desired.pods import APP_NAME
from memcached_operator.memcached.desired.statefulset import served_ports
from memcached_operator.memcached.spec import checked
from memcached_operator.workloads.deployment import DEPLOYMENT
from memcached_operator.workloads.pods import Remedies
from memcached_operator.workloads.statefulset import STATEFULSET
from memcached_operator.workloads.workload import WorkloadState, workload_state

REMEDIES = Remedies(
    "spec.imagePullSecrets",
    "spec.cache.warmRestart needs an image with the program sh: use another image, or set it to false",
)
"""What the status advises."""

RESUME = "set spec.rollout.paused to false"
"""The remedy for a pause."""


def status_with(cluster_domain: str) -> Callable[[Snapshot, Outcome, datetime], DesiredStatus]:
    """The function that computes the `MemcachedStatus`. `cluster_domain`: the DNS domain of the cluster."""

    def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
        """`now` is used only to decide how long a crash is reported, and whether a StatefulSet is stuck."""
        meta = snapshot.cr["metadata"]
        state = _workload_state(snapshot, outcome, now)
        return DesiredStatus(
            {
                "observedGeneration": meta.get("generation", 0),
                "replicas": state.rollout.replicas,
                "readyReplicas": state.rollout.ready,
                "selector": labels.selector(APP_NAME, meta["name"]),
                "nodes": state.nodes,
                **_from_spec(snapshot, cluster_domain),
                "conditions": state.conditions,
            },
            state.requeue_after,
        )

    return status


def _workload_state(snapshot: Snapshot, outcome: Outcome, now: datetime) -> WorkloadState:
    workload = STATEFULSET if nested_map(snapshot.cr, "spec").get("identity") == STABLE else DEPLOYMENT
    return workload_state(workload, snapshot, outcome, now, remedies=REMEDIES, resume=RESUME)


def _from_spec(snapshot: Snapshot, domain: str) -> dict[str, Any]:
    """What follows from the spec. An invalid spec leaves the pods as they are, and so the previous values."""
    cr = snapshot.cr
    spec, errors = checked(cr)
    if spec is None or errors:
        before = nested_map(cr, "status")
        return {name: before[name] for name in ("cache", "servers") if before.get(name) is not None}
    if not is_stable(spec):
        return {"cache": _cache(spec)}
    ports = served_ports(spec, snapshot.workload(STATEFULSETS))
    return {"cache": _cache(spec), "servers": servers(cr, spec.size, ports.default, domain)}


def _cache(spec: MemcachedSpec) -> Object:
    """The `CacheStatus`."""
    found = effective(spec)
    return {
        "memory": canonical(f"{megabytes(found.memory)}Mi"),
        "maxItemSize": canonical(f"{found.item_size // 1024}Ki"),
        "maxConnections": found.settings.connections,
        "threads": found.settings.threads,
    }
