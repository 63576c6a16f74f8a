"""The status of a Memcached, from its workload and its pods."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from memcached_api.memcached.extstore import CLAIM, file_mebibytes
from memcached_api.memcached.memory import megabytes
from memcached_api.memcached.resolved import resolved
from memcached_api.memcached.rules.spec import STABLE
from memcached_api.memcached.types import MemcachedSpec, is_stable
from memcached_api.quantity import canonical
from memcached_api.values import nested_field
from memcached_operator.engine.kind import DesiredStatus, Outcome
from memcached_operator.findings.rollout import Rollout
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import labels
from memcached_operator.kube.resource import DEPLOYMENTS, STATEFULSETS, Object, nested_map
from memcached_operator.memcached.addresses import servers
from memcached_operator.memcached.containers import (
    CONTAINERS,
    CONTAINERS_WITH_DISK,
    DISRUPTIONS,
    EXTSTORE,
    LOSS,
    SCHEDULING,
    disk_scheduling,
)
from memcached_operator.memcached.desired.pods import APP_NAME, CONTAINER
from memcached_operator.memcached.losses import THIS_REPLACES, loss_with, no_loss
from memcached_operator.memcached.scaling.facts import current
from memcached_operator.memcached.scaling.report import Report, report_of
from memcached_operator.memcached.slots.pause import served_ports
from memcached_operator.memcached.slots.rollout import rollout
from memcached_operator.memcached.spec import checked
from memcached_operator.memcached.updates.confirmation import takes_back
from memcached_operator.memcached.updates.record import is_planned_end
from memcached_operator.parts.containers import SURGE
from memcached_operator.parts.placement import LABEL_KEYS_REMOVED, lacks_label_keys
from memcached_operator.parts.workloads import pause
from memcached_operator.parts.workloads.deployment import deployment_rollout
from memcached_operator.parts.workloads.workload import WorkloadState, workload_state
from memcached_operator.world.snapshot import Snapshot


def status_with(cluster_domain: str) -> Callable[[Snapshot, Outcome, datetime], DesiredStatus]:
    """The function that computes the `MemcachedStatus`. `cluster_domain`: the DNS domain of the cluster."""

    def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
        """`now` is used only to decide how long a crash is reported, and whether a StatefulSet is stuck."""
        meta = snapshot.cr["metadata"]
        report = _scaling(snapshot, outcome, now)
        outcome = replace(outcome, problems=(*outcome.problems, *report.problems))
        state = _workload_state(snapshot, outcome, now)
        return DesiredStatus(
            {
                "observedGeneration": meta.get("generation", 0),
                "replicas": state.rollout.replicas,
                "updatedReplicas": state.rollout.updated,
                "readyReplicas": state.rollout.ready,
                "selector": labels.selector(APP_NAME, meta["name"]),
                "nodes": state.nodes,
                **_from_spec(snapshot, cluster_domain),
                **({"scaling": report.status} if report.status else {}),
                "conditions": state.conditions,
            },
            state.requeue_after,
        )

    return status


def _workload_state(snapshot: Snapshot, outcome: Outcome, now: datetime) -> WorkloadState:
    has_slots = nested_map(snapshot.cr, "spec").get("identity") == STABLE
    live = snapshot.child(STATEFULSETS if has_slots else DEPLOYMENTS)
    workload_rollout = rollout(snapshot, outcome.update, now) if has_slots else deployment_rollout(live)
    spec, _ = checked(snapshot.cr)
    disk = nested_map(snapshot.cr, "spec", "cache", "extstore")
    taken_back = partial(takes_back, revision=nested_map(live or {}, "status").get("updateRevision", ""))
    rules = PodRules(
        "Memcached",
        CONTAINERS_WITH_DISK if disk else CONTAINERS,
        LOSS,
        loss_with(spec) if workload_rollout.ready or _has_run(snapshot) else no_loss,
        is_planned_end,
        taken_back,
        scheduling={**SCHEDULING, **disk_scheduling(disk)} if disk else SCHEDULING,
        surge=SURGE,
        disruptions=DISRUPTIONS,
        claims=EXTSTORE if disk else "",
    ).within(live)
    replaces = outcome.update is not None and outcome.update.replaces if has_slots else _has_outdated(workload_rollout)
    resume = f"{pause.remedy(snapshot.cr)}{THIS_REPLACES if replaces else ''}"
    reported = replace(outcome, notices=(*outcome.notices, *_removed_fields(snapshot, outcome)))
    return workload_state(workload_rollout, snapshot, reported, now, rules=rules, resume=resume)


def _has_run(snapshot: Snapshot) -> bool:
    """Whether a memcached has been started."""
    return any(pod.container_status(CONTAINER).has_run for pod in snapshot.pods)


def _has_outdated(rollout: Rollout) -> bool:
    """Whether pods of a Deployment have an earlier pod template. A new Memcached without pods has none."""
    return rollout.current and rollout.replicas > rollout.updated


def _removed_fields(snapshot: Snapshot, outcome: Outcome) -> Iterator[str]:
    """A notice if the API server has removed fields of the pod template. Not while another template may be stored."""
    spec, _ = checked(snapshot.cr)
    if spec is None or spec.pod_template is None or outcome.problems or (spec.rollout and spec.rollout.paused):
        return
    live = snapshot.child(STATEFULSETS if is_stable(spec) else DEPLOYMENTS)
    if lacks_label_keys(spec.pod_template.spec, nested_field(live, "spec", "template", "spec", "affinity")):
        yield LABEL_KEYS_REMOVED


def _from_spec(snapshot: Snapshot, domain: str) -> dict[str, Object | list[str]]:
    """The fields `cache` and `servers`. They keep their values while the pods do, because of an invalid spec."""
    cr = snapshot.cr
    spec, _ = checked(cr)
    if spec is None:
        before = nested_map(cr, "status")
        return {name: before[name] for name in ("cache", "servers") if before.get(name) is not None}
    if not is_stable(spec):
        return {"cache": _cache(spec)}
    ports = served_ports(spec, snapshot.workload(STATEFULSETS))
    latch = current(snapshot, spec)
    size = spec.size if latch is None else latch.published
    return {"cache": _cache(spec), "servers": servers(cr, size, ports.default, domain)}


def _scaling(snapshot: Snapshot, outcome: Outcome, now: datetime) -> Report:
    """What is reported of a change of size. Its state stays while the pods do, if the spec is invalid."""
    spec, _ = checked(snapshot.cr)
    if spec is None:
        return Report(dict(nested_map(snapshot.cr, "status", "scaling")), ())
    latch, update = current(snapshot, spec), outcome.update
    updated = update is None or update.complete
    return Report({}, ()) if latch is None else report_of(snapshot, spec, latch, now, updated=updated)


def _cache(spec: MemcachedSpec) -> Object:
    """The field `status.cache`: the settings with which memcached runs, also those that the spec does not set."""
    cache = resolved(spec)
    return {
        "memory": canonical(f"{megabytes(cache.memory)}Mi"),
        "maxItemSize": canonical(f"{cache.item_size // 1024}Ki"),
        "maxConnections": cache.settings.connections,
        "threads": cache.settings.threads,
        **_disk(spec),
    }


def _disk(spec: MemcachedSpec) -> Object:
    """The field `status.cache.extstore`, if items are on disks."""
    disk = spec.cache.extstore
    if disk is None:
        return {}
    return {"extstore": {"file": canonical(f"{file_mebibytes(disk.size)}Mi"), "volume": disk.volume or CLAIM}}
