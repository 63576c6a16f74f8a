"""The status of a MemcachedProxy, from its Deployment, its Service and its pods."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from memcached_api.annotations import RING_ANNOTATION
from memcached_api.memcachedproxy.types import MAX_CACHES, MemcachedProxySpec
from memcached_api.values import nested_field
from memcached_operator.engine.kind import DesiredStatus, Outcome
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube import labels
from memcached_operator.kube.resource import DEPLOYMENTS, SERVICES, Object, nested_map
from memcached_operator.memcachedproxy.containers import CONTAINERS, DISRUPTIONS, INIT_CONTAINERS, SCHEDULING
from memcached_operator.memcachedproxy.desired.deployment import APP_NAME
from memcached_operator.memcachedproxy.desired.scaling import SWEEP, is_swept
from memcached_operator.memcachedproxy.references import cache_of, shows
from memcached_operator.memcachedproxy.spec import checked
from memcached_operator.memcachedproxy.target import target_of
from memcached_operator.parts.containers import SURGE
from memcached_operator.parts.dns import host
from memcached_operator.parts.placement import LABEL_KEYS_REMOVED, lacks_label_keys
from memcached_operator.parts.ring import CORRECT, NO_USE, Ring, Use, ring_in, ring_of
from memcached_operator.parts.workloads import pause
from memcached_operator.parts.workloads.deployment import deployment_rollout
from memcached_operator.parts.workloads.workload import workload_state
from memcached_operator.world.pod import Pod
from memcached_operator.world.snapshot import Listed, Snapshot

TRAFFIC_REMOVED: Final = (
    "spec.service.trafficDistribution: this API server removes the field, so clients connect to proxies in all zones. "
    "Upgrade the cluster to Kubernetes {} or later, or remove it"
)
TRAFFIC_SINCE: Final = {"PreferClose": "1.31", "PreferSameZone": "1.34", "PreferSameNode": "1.34"}
"""The first release of Kubernetes that supports a value by default (kubernetes pkg/features/kube_features.go)."""


def status_with(cluster_domain: str) -> Callable[[Snapshot, Outcome, datetime], DesiredStatus]:
    """The function that computes the `MemcachedProxyStatus`. `cluster_domain`: the DNS domain of the cluster."""

    def status(snapshot: Snapshot, outcome: Outcome, now: datetime) -> DesiredStatus:
        """`now` is used only to decide how long a crash is reported."""
        meta = snapshot.cr["metadata"]
        spec, _ = checked(snapshot.cr)
        live = snapshot.child(DEPLOYMENTS)
        rules = PodRules(
            "MemcachedProxy",
            CONTAINERS,
            scheduling=SCHEDULING,
            surge=SURGE,
            disruptions=DISRUPTIONS,
            init_containers=INIT_CONTAINERS,
        ).within(live)
        rings = (*_unknown_rings(snapshot), *_unswept(snapshot))
        notices = (*outcome.notices, *_removed_fields(snapshot, spec, outcome), *rings)
        reported = replace(outcome, notices=notices)
        resume = pause.remedy(snapshot.cr)
        state = workload_state(deployment_rollout(live), snapshot, reported, now, rules=rules, resume=resume)
        return DesiredStatus(
            {
                "observedGeneration": meta.get("generation", 0),
                "replicas": state.rollout.replicas,
                "updatedReplicas": state.rollout.updated,
                "readyReplicas": state.rollout.ready,
                "selector": labels.selector(APP_NAME, meta["name"]),
                "nodes": state.nodes,
                "address": _address(snapshot.cr, spec, cluster_domain),
                "caches": caches(snapshot, spec),
                "conditions": state.conditions,
            },
            state.requeue_after,
        )

    return status


def _address(cr: Object, spec: MemcachedProxySpec | None, domain: str) -> str:
    """The address for clients. It keeps its value while the Service does, because of an invalid spec."""
    if spec is None:
        return nested_map(cr, "status").get("address", "")
    return f"{host(cr, domain)}:{spec.port}"


def caches(snapshot: Snapshot, spec: MemcachedProxySpec | None) -> list[dict[str, str | int]]:
    """The largest number of slots in the routes of the Deployment or of an existing pod, by Memcached.

    Pods that are being deleted count: they serve until they stop. So does the next ring, which the Deployment gets when
    the status contains it. A number becomes lower only after a list of the pods. The Memcached that the spec names is
    the first.
    """
    used = _used(snapshot, spec)
    is_known = snapshot.listed is not None and not _has_unknown(snapshot)
    kept = dict[str, Use]() if is_known else shows(snapshot.cr)
    current = nested_field(snapshot.cr, "spec", "memcachedRef", "name")
    names = sorted(used.keys() | kept.keys(), key=lambda name: (name != current, name not in used, name))
    settled = _settled(snapshot)
    return [
        {
            "name": name,
            "servers": max(used.get(name, 0), kept.get(name, NO_USE).servers),
            **({"ring": settled.usage} if settled is not None and settled.name == name else {}),
        }
        for name in names[:MAX_CACHES]
    ]


def _settled(snapshot: Snapshot) -> Ring | None:
    """The ring that all pods have, and that none without it can follow; None while pods differ.

    Only while it matters: a Memcached changes its size in phases. It is known by a list of the pods after a rollout,
    and then stays until the template changes.
    """
    ring = _complete(snapshot)
    return ring if ring is not None and (_shows_ring(snapshot, ring) or _is_listed(snapshot, ring)) else None


def _is_listed(snapshot: Snapshot, ring: Ring) -> bool:
    """Whether a list has only pods with this ring."""
    found = snapshot.read_by(RINGS)
    return found is not None and found <= {Seen(ring)}


def _shows_ring(snapshot: Snapshot, ring: Ring) -> bool:
    """Whether the status has shown a ring as that of all pods."""
    return shows(snapshot.cr).get(ring.name, NO_USE).usage == ring.usage


def _complete(snapshot: Snapshot) -> Ring | None:
    """The ring of the template, if all known pods have it, and no workload creates others."""
    live = snapshot.workload(DEPLOYMENTS)
    ring = None if live is None else ring_of(nested_map(live, "spec", "template"))
    if ring is None or not _is_watched(snapshot, ring):
        return None
    rollout = deployment_rollout(live)
    is_done = rollout.complete or (_shows_ring(snapshot, ring) and rollout.current)
    has_one = all(_seen(pod) == Seen(ring) for pod in snapshot.pods)
    return ring if is_done and rollout.replicas == rollout.updated and has_one else None


def _is_watched(snapshot: Snapshot, ring: Ring) -> bool:
    """Whether a Memcached waits for a ring."""
    cache = cache_of(snapshot, ring.name)
    return ring.move is not None or (cache is not None and cache.warm)


def _used(snapshot: Snapshot, spec: MemcachedProxySpec | None) -> dict[str, int]:
    """The largest number of slots that is known to be in use, or is used next, by Memcached."""
    live = snapshot.workload(DEPLOYMENTS)
    rings = [*(seen.ring for seen in _all_seen(snapshot)), _announced(snapshot, spec)]
    if live is not None:
        rings.append(ring_of(nested_map(live, "spec", "template")))
    servers: dict[str, int] = {}
    for ring in filter(None, rings):
        servers[ring.name] = max(ring.servers, servers.get(ring.name, 0))
    return servers


def _has_unknown(snapshot: Snapshot) -> bool:
    """Whether a pod has no ring: something has removed it, so the pod may use any slot."""
    return any(seen.ring is None for seen in _all_seen(snapshot))


def _needs_list(snapshot: Snapshot) -> bool:
    """Whether a number of slots becomes lower, or all pods have one ring, if no other pod exists than those that events
    have reported.

    Before all pods have the template of the Deployment, pods with the ring before can be created again.
    """
    used = _used(snapshot, checked(snapshot.cr)[0])
    live = snapshot.workload(DEPLOYMENTS)
    rollout = deployment_rollout(live)
    is_updated = rollout.current and rollout.size == rollout.replicas == rollout.updated
    is_lower = any(use.servers > used.get(name, 0) for name, use in shows(snapshot.cr).items())
    complete = _complete(snapshot)
    has_settled = complete is not None and not _shows_ring(snapshot, complete) and not _is_listed(snapshot, complete)
    return has_settled or (is_lower and (live is None or is_updated) and not _has_unknown(snapshot))


class Seen(NamedTuple):
    """What the status reads of a pod: its ring, and whether the sweep has ended, if the ring needs one."""

    ring: Ring | None
    is_swept: bool = True


def _seen(pod: Pod) -> Seen:
    ring = ring_in(pod.metadata.annotations)
    return Seen(ring, ring is None or not is_swept(ring) or _has_swept(pod))


def _has_swept(pod: Pod) -> bool:
    """Whether the init container has ended. Something can have removed it from the pod."""
    ended = (status.state.terminated for _, status in pod.init_containers if status.name == SWEEP)
    return any(state is not None and state.exit_code == 0 for state in ended)


def _all_seen(snapshot: Snapshot) -> Iterator[Seen]:
    yield from map(_seen, snapshot.pods)
    yield from snapshot.read_by(RINGS) or ()


RINGS: Final[Listed[Seen]] = Listed(_needs_list, _seen)
"""The rings of all pods: a Memcached must not lose a slot while a pod exists whose event is late."""


def _unknown_rings(snapshot: Snapshot) -> Iterator[str]:
    """A notice that slots are kept for pods without a ring."""
    if _has_unknown(snapshot):
        names = sorted(pod.name for pod in snapshot.pods if _seen(pod).ring is None)
        pod = f"Pod {names[0]}" if names else "A pod"
        verb = f" and {len(names) - 1} more have" if len(names) > 1 else " has"
        yield f"{pod}{verb} no valid annotation {RING_ANNOTATION}, so no slot of the Memcached is removed. {CORRECT}"


def _unswept(snapshot: Snapshot) -> Iterator[str]:
    """A notice about pods that serve in Prepare, although nothing has removed outdated items."""
    names = sorted(pod.name for pod in snapshot.pods if pod.is_ready and not _seen(pod).is_swept)
    if names:
        verb = f" and {len(names) - 1} more serve" if len(names) > 1 else " serves"
        text = f"Pod {names[0]}{verb} without the end of its init container {SWEEP}, so the change of size waits"
        yield f"{text}. {CORRECT}"


def _announced(snapshot: Snapshot, spec: MemcachedProxySpec | None) -> Ring | None:
    """The ring that the pods get next."""
    rings = None if spec is None else target_of(snapshot, spec.memcached_ref.name)
    return None if rings is None else rings.announced


def _removed_fields(snapshot: Snapshot, spec: MemcachedProxySpec | None, outcome: Outcome) -> Iterator[str]:
    """A notice for each field that the API server has removed from a child."""
    if spec is None or outcome.problems:
        return
    affinity = nested_field(snapshot.child(DEPLOYMENTS), "spec", "template", "spec", "affinity")
    if spec.pod_template is not None and lacks_label_keys(spec.pod_template.spec, affinity):
        yield LABEL_KEYS_REMOVED
    service = snapshot.child(SERVICES)
    wanted = spec.service and spec.service.traffic_distribution
    if wanted and service is not None and nested_map(service, "spec").get("trafficDistribution") is None:
        yield TRAFFIC_REMOVED.format(TRAFFIC_SINCE[wanted])
