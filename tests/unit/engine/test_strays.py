"""What has the labels of an object and affects its clients or its pods, but does not belong to it."""

from dataclasses import replace
from typing import Any, Final

import pytest

from memcached_api.images import Images
from memcached_operator.appservice.controller import appservice
from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.engine.reconciler import gather
from memcached_operator.engine.strays.finder import GRACE, StrayFinder, strays
from memcached_operator.engine.strays.orphans import MAX_BESIDE
from memcached_operator.engine.strays.pods import MAX_KEPT
from memcached_operator.findings.finding import Problem
from memcached_operator.findings.rules import PodRules
from memcached_operator.findings.strays import notices, problems
from memcached_operator.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    SERVICES,
    STATEFULSETS,
    Key,
    Object,
    Resource,
    key_of,
)
from memcached_operator.memcached.controller import memcached
from memcached_operator.memcachedproxy.controller import memcachedproxy
from memcached_operator.parts.workloads.workload import MAX_PROBLEM_LENGTH
from memcached_operator.world.snapshot import Snapshot, Stray, Strays
from memcached_operator.world.store import Store
from support.stores import whole_store
from unit import builders

IMAGES: Final = Images("example.com/memcached:1")
CACHE: Final = memcached(IMAGES)
CONTROLLED: Final[Object] = {"controller": True, "apiVersion": "apps/v1"}
READY: Final = [{"type": "Ready", "status": "True"}]
KINDS: Final[dict[str, tuple[ReconciledKind, Object]]] = {
    "Memcached": (CACHE, builders.memcached()),
    "MemcachedProxy": (memcachedproxy(IMAGES), builders.memcachedproxy("cache")),
    "AppService": (appservice(), builders.appservice("cache")),
}
RULES: Final = PodRules("Memcached", loss="its items are then lost")


def labels(kind: ReconciledKind) -> dict[str, str]:
    """The labels of an object `cache` of this kind."""
    return {**builders.LABELS, "app.kubernetes.io/name": kind.app_name}


def pod(name: str, owner: Object | None = None, kind: ReconciledKind = CACHE, **meta: Any) -> Object:
    """A ready pod with the labels of `cache`, and with this controller."""
    found = builders.pod(name, conditions=READY)
    own: Object = {"labels": labels(kind), "ownerReferences": [] if owner is None else [{**CONTROLLED, **owner}]}
    return {**found, "metadata": {**found["metadata"], **own, **meta}}


def of_replica_set(deployment: str, kind: ReconciledKind = CACHE) -> Object:
    """A pod of a ReplicaSet of a Deployment of this name."""
    owner = {"kind": "ReplicaSet", "name": f"{deployment}-abc", "uid": "rs"}
    return pod(f"{deployment}-abc-1", owner, kind, labels={**labels(kind), "pod-template-hash": "abc"})


def of_stateful_set(name: str, uid: str = "sts") -> Object:
    """A pod of a StatefulSet."""
    return pod(f"{name}-0", {"kind": "StatefulSet", "name": name, "uid": uid})


def orphan(resource: Resource, name: str = "cache", **meta: Any) -> Object:
    """A former child without an owner."""
    own: dict[str, Any] = {"name": name, "ownerReferences": [], "uid": "sts", **meta}
    return builders.owned(None, resource, **own)


def child(kind: ReconciledKind, cr: Object, resource: Resource, **spec: Any) -> Object:
    return {**builders.owned(cr, resource, uid=resource.kind, labels=labels(kind)), "spec": spec}


def cache_of(*objects: tuple[Resource, Object]) -> Store:
    cache = whole_store()
    for resource, obj in objects:
        cache.put(resource, obj)
    return cache


def found(
    *objects: tuple[Resource, Object],
    kind: ReconciledKind = CACHE,
    cr: Object = KINDS["Memcached"][1],
    workload: Resource = DEPLOYMENTS,
    service: Object | None = None,
    known: bool = True,
) -> Strays:
    """The strays beside the children. `known`: the plan has children."""
    children = {each: child(kind, cr, each) for each in (workload, SERVICES)}
    children[SERVICES]["spec"] = service or {}
    cache = cache_of(*children.items(), *objects)
    desired = {key_of(resource, obj) for resource, obj in children.items()} if known else None
    return strays(cache, kind, gather(cache, kind, cr, {}), desired)


def key(resource: Resource, name: str = "cache") -> Key:
    return Key(resource, "test", name)


@pytest.mark.parametrize(("wanted", "left"), [(DEPLOYMENTS, STATEFULSETS), (STATEFULSETS, DEPLOYMENTS)])
def test_workload_of_an_earlier_object_with_another_identity(wanted: Resource, left: Resource) -> None:
    pods = of_stateful_set("cache") if left == STATEFULSETS else of_replica_set("cache")
    objects = [(left, orphan(left)), (PODS, pods)]
    assert found(*objects, workload=wanted) == Strays(workloads=(key(left),))
    assert found(*objects, workload=wanted, known=False) == Strays()
    assert found((left, {**orphan(left), "spec": {"replicas": 0}}), workload=wanted) == Strays()


def test_policies_are_no_strays_while_the_plan_waits_without_a_workload() -> None:
    """As that of a MemcachedProxy without a usable Memcached: the next plan can adopt them."""
    kind, cr = KINDS["MemcachedProxy"]
    left = orphan(POD_DISRUPTION_BUDGETS, labels=labels(kind))
    cache = cache_of((SERVICES, child(kind, cr, SERVICES)), (POD_DISRUPTION_BUDGETS, left))
    snapshot = gather(cache, kind, cr, {})
    assert strays(cache, kind, snapshot, {key(SERVICES)}) == Strays()
    assert strays(cache, kind, snapshot, {key(SERVICES), key(DEPLOYMENTS)}).policies == (key(POD_DISRUPTION_BUDGETS),)


def test_workload_that_is_desired_is_adopted_or_a_conflict() -> None:
    """Also a copy that differs: it has a conflict of its own."""
    cache = cache_of((SERVICES, child(CACHE, builders.memcached(), SERVICES)), (DEPLOYMENTS, orphan(DEPLOYMENTS)))
    cache.put(PODS, of_replica_set("cache"))
    snapshot = gather(cache, CACHE, builders.memcached(), {})
    assert strays(cache, CACHE, snapshot, {key(DEPLOYMENTS)}) == Strays()
    assert strays(cache, CACHE, snapshot, None) == Strays()
    assert strays(cache, CACHE, snapshot, {key(STATEFULSETS)}).workloads == (key(DEPLOYMENTS),)


def test_what_an_earlier_object_has_left_besides() -> None:
    slots = [(SERVICES, orphan(SERVICES, f"cache-{slot}")) for slot in range(20)]
    config = (CONFIG_MAPS, orphan(CONFIG_MAPS, "cache-connection"))
    others = [
        (CONFIG_MAPS, orphan(CONFIG_MAPS, "other")),
        (CONFIG_MAPS, orphan(CONFIG_MAPS, "other-connection")),
        (SERVICES, orphan(SERVICES, "cache-x", managedFields=[])),
    ]
    workload = (STATEFULSETS, orphan(STATEFULSETS))
    beside = found(workload, config, *slots, *others).beside
    assert beside[:2] == (key(CONFIG_MAPS, "cache-connection"), key(SERVICES, "cache-0"))
    assert len(beside) == MAX_BESIDE
    assert found(config, *slots, *others) == Strays()


POLICIES: Final[list[tuple[Resource, dict[str, Any], bool]]] = [
    (NETWORK_POLICIES, {}, True),
    (POD_DISRUPTION_BUDGETS, {}, True),
    (NETWORK_POLICIES, {"name": "other"}, False),
    (NETWORK_POLICIES, {"managedFields": []}, False),
    (POD_DISRUPTION_BUDGETS, {"labels": {}}, False),
    (POD_DISRUPTION_BUDGETS, {"ownerReferences": [builders.owned()["metadata"]["ownerReferences"][0]]}, False),
]


@pytest.mark.parametrize(("resource", "changes", "is_stray"), POLICIES)
def test_policies_of_an_earlier_object(resource: Resource, changes: dict[str, Any], is_stray: bool) -> None:
    left = (resource, orphan(resource, **changes))
    assert found(left).policies == (key(resource),) * is_stray
    assert found(left, known=False).policies == ()


WEB: Final = builders.owned(name="web", ownerReferences=[], managedFields=[])
FINALIZER: Final[Object] = {"deletionTimestamp": "now", "finalizers": ["example.com/a"]}
EARLIER: Final = builders.owned(builders.memcached(uid="earlier"), STATEFULSETS, uid="sts")
OWNERS: Final[dict[str, tuple[list[tuple[Resource, Object]], Stray]]] = {
    "Deployment without our labels": ([(PODS, of_replica_set("web"))], Stray("ReplicaSet", "web-abc")),
    "Deployment with our labels": ([(PODS, of_replica_set("web")), (DEPLOYMENTS, WEB)], Stray("Deployment", "web")),
    "StatefulSet": ([(PODS, of_stateful_set("web"))], Stray("StatefulSet", "web")),
    "earlier StatefulSet": ([(PODS, of_stateful_set("cache")), (STATEFULSETS, EARLIER)], Stray("StatefulSet", "cache")),
    "StatefulSet that another client has created": (
        [(PODS, of_stateful_set("cache")), (STATEFULSETS, orphan(STATEFULSETS, managedFields=[]))],
        Stray("StatefulSet", "cache"),
    ),
    "StatefulSet that a finalizer blocks": (
        [(PODS, of_stateful_set("cache")), (STATEFULSETS, orphan(STATEFULSETS, **FINALIZER))],
        Stray("StatefulSet", "cache", is_deleted=True, blocked_by="its finalizer example.com/a blocks it"),
    ),
    "Job": ([(PODS, pod("a", {"kind": "Job", "name": "job", "uid": "job"}))], Stray("Job", "job")),
    "StatefulSet that does not exist": ([(PODS, of_stateful_set("cache"))], Stray("StatefulSet", "cache")),
}


@pytest.mark.parametrize(("objects", "owner"), OWNERS.values(), ids=OWNERS)
def test_pods_of_other_owners(objects: list[tuple[Resource, Object]], owner: Stray) -> None:
    assert found(*objects) == Strays(owners=(owner,))


@pytest.mark.parametrize(("kind", "cr"), KINDS.values(), ids=KINDS)
def test_pods_with_the_labels_of_any_kind(kind: ReconciledKind, cr: Object) -> None:
    objects = [(PODS, of_replica_set("cache", kind)), (PODS, of_replica_set("web", kind)), (PODS, pod("a", None, kind))]
    assert found(*objects, kind=kind, cr=cr) == Strays(owners=(Stray("ReplicaSet", "web-abc"),), pods=("a",))


def test_pods_of_a_deleted_workload_that_is_created_again() -> None:
    assert found((PODS, of_stateful_set("cache", "before")), workload=STATEFULSETS) == Strays()


UNREACHED: Final[dict[str, Object]] = {
    "completed": {**pod("a"), "status": {"phase": "Failed", "conditions": READY}},
    "being deleted": builders.deleted(pod("a")),
    "other labels": pod("a", labels={**builders.LABELS, "app.kubernetes.io/managed-by": "Helm"}),
    "not ready": {**pod("a"), "status": {"phase": "Running"}},
}


@pytest.mark.parametrize("unreached", UNREACHED.values(), ids=UNREACHED)
def test_pods_that_no_client_reaches(unreached: Object) -> None:
    assert found((PODS, unreached)) == Strays()


def test_pods_that_are_not_ready_are_reached_by_the_service_of_slots() -> None:
    unready = {**pod("a"), "status": {"phase": "Running"}}
    service = {"publishNotReadyAddresses": True}
    assert found((PODS, unready), workload=STATEFULSETS, service=service).pods == ("a",)
    assert found((PODS, {**unready, "status": {"phase": "Pending"}}), service=service).pods == ()


def test_without_a_service_no_client_reaches_pods() -> None:
    cache = cache_of((PODS, pod("a")), (STATEFULSETS, orphan(STATEFULSETS)))
    assert strays(cache, CACHE, gather(cache, CACHE, builders.memcached(), {}), set()) == Strays()


def test_strays_are_bounded() -> None:
    many = [(PODS, pod(f"p-{n:04}")) for n in range(1000)]
    owned = [(PODS, pod(f"o-{n:04}", {"kind": "k" * 5000, "name": f"{n:04}", "uid": "x"})) for n in range(1000)]
    kept = found(*many, *owned)
    assert (len(kept.pods), len(kept.owners)) == (MAX_KEPT, MAX_KEPT)
    texts = [problem.message for problem in reported(kept)]
    assert max(map(len, texts)) <= MAX_PROBLEM_LENGTH
    assert (
        "to pods without an owner as well, because they have its labels: p-0000, p-0001, p-0002 and others" in texts[1]
    )


class Finding:
    """A finder, the clock and the last status of an object with a pod of another owner and a leftover policy."""

    def __init__(self, *, reason: str = "AsExpected") -> None:
        self.time = 0.0
        self.cache = cache_of((SERVICES, child(CACHE, builders.memcached(), SERVICES)), (PODS, pod("a")))
        self.cache.put(NETWORK_POLICIES, orphan(NETWORK_POLICIES))
        self.finder = StrayFinder(self.cache)
        self.finder.clock = lambda: self.time
        self.cr = {**builders.memcached(), "status": {"conditions": [{"type": "Degraded", "reason": reason}]}}

    def find(self, *problems: Problem) -> tuple[Strays, float | None]:
        desired = {key(SERVICES), key(DEPLOYMENTS)}
        return self.finder.find(CACHE, key_of(CACHE.resource, self.cr), self.snapshot, desired, problems)

    @property
    def snapshot(self) -> Snapshot:
        return gather(self.cache, CACHE, self.cr, {})


def test_pods_of_a_transition_are_reported_after_a_while() -> None:
    finding = Finding()
    policies = Strays(policies=(key(NETWORK_POLICIES),))
    assert finding.find() == (policies, GRACE)
    finding.time = GRACE - 1
    assert finding.find() == (policies, 1)
    finding.time = GRACE
    assert finding.find() == (replace(policies, pods=("a",)), None)
    finding.cache.remove(key(PODS, "a"), 10**6)
    assert finding.find() == (policies, None)
    finding.cache.clear_tombstone(key(PODS, "a"))
    finding.cache.put(PODS, pod("a"))
    assert finding.find() == (policies, GRACE)


def test_reported_pods_are_still_reported_after_a_restart() -> None:
    finding = Finding(reason="Conflict")
    assert [finding.find()[0].pods for _ in range(2)] == [("a",), ("a",)]


AUTOSCALER: Final = Problem("Conflict", "HorizontalPodAutoscaler a scales Deployment cache", blocks=False)


def test_conflict_with_another_cause_does_not_report_pods_of_a_transition() -> None:
    finding = Finding(reason="Conflict")
    assert finding.find(AUTOSCALER)[0].pods == ()
    assert finding.find()[0].pods == ()
    leftover = Finding(reason="Conflict")
    leftover.cache.put(STATEFULSETS, orphan(STATEFULSETS))
    assert (leftover.find()[0].workloads, leftover.find()[0].pods) == ((key(STATEFULSETS),), ())


def test_conflict_reports_pods_of_a_transition_only_after_a_restart() -> None:
    finding = Finding(reason="Conflict")
    finding.cache.remove(key(PODS, "a"), 10**6)
    assert finding.find()[0].pods == ()
    finding.cache.clear_tombstone(key(PODS, "a"))
    finding.cache.put(PODS, pod("a"))
    assert finding.find()[0].pods == ()


def reported(strays: Strays, rules: PodRules = RULES) -> list[Problem]:
    """The problems that these strays are."""
    return list(problems(Snapshot(builders.memcached(), strays=strays), rules))


OTHERS: Final = Stray("Deployment", "web"), Stray("Job", "x\n" * 100)
MESSAGES: Final[dict[str, tuple[Strays, str]]] = {
    "workload": (
        Strays((key(STATEFULSETS),), (key(CONFIG_MAPS, "cache-connection"),)),
        "StatefulSet cache has no owner, and Service cache sends clients of this Memcached to its pods as well, which "
        "have other items. It is not modified. To delete it with its pods and their items, run kubectl delete -n test "
        "--wait=false statefulset/cache configmap/cache-connection",
    ),
    "other owners": (
        Strays(owners=OTHERS),
        'Pods of Deployment web, Job "x\\nx',
    ),
    "being deleted": (
        Strays(owners=(Stray("StatefulSet", "cache", is_deleted=True, blocked_by="its finalizer a blocks it"),)),
        "Service cache also sends clients to pods of StatefulSet cache, which is being deleted: its finalizer a blocks "
        "it. The controllers of the finalizers must remove them",
    ),
    "pods": (
        Strays(pods=("a", "b")),
        "Service cache sends clients of this Memcached to pods without an owner as well, because they have its labels: "
        "a, b. They are not modified. Delete them and their items. Or, to keep them running without these clients, run "
        "kubectl label pod a b app.kubernetes.io/instance- -n test",
    ),
}


@pytest.mark.parametrize(("strays", "message"), MESSAGES.values(), ids=MESSAGES)
def test_message(strays: Strays, message: str) -> None:
    (problem,) = reported(strays)
    assert (problem.reason, problem.blocks) == ("Conflict", False)
    assert problem.message.startswith(message)
    assert "\n" not in problem.message


def test_pods_of_a_workload_whose_deletion_nothing_blocks_are_a_notice() -> None:
    """It ends without a change by a user."""
    found = Strays(owners=(Stray("Deployment", "cache", is_deleted=True),))
    assert reported(found) == []
    assert list(notices(Snapshot(builders.memcached(), strays=found), RULES)) == [
        "Service cache also sends clients to pods of Deployment cache, which is being deleted"
    ]


def test_nothing_is_said_of_items_that_pods_cannot_have() -> None:
    found = Strays((key(DEPLOYMENTS),), (), (), (Stray("Job", "job"),), ("a",))
    texts = [problem.message for problem in reported(found, PodRules("AppService"))]
    assert len(texts) == 3
    assert not any("items" in text for text in texts)


def test_longest_message_is_not_truncated() -> None:
    """With the longest names, its command is complete."""
    name, namespace = "n" * 52, "m" * 63
    left = Strays(
        (Key(STATEFULSETS, namespace, name),),
        tuple(Key(SERVICES, namespace, f"{name}-{slot:03}") for slot in range(MAX_BESIDE)),
    )
    assert len(reported(left)[0].message) <= MAX_PROBLEM_LENGTH


def test_notices_of_policies() -> None:
    found = Strays(policies=(key(NETWORK_POLICIES), key(POD_DISRUPTION_BUDGETS)))
    assert list(notices(Snapshot(builders.memcached(), strays=found), RULES)) == [
        "NetworkPolicy cache has no owner, but restricts the connections to the pods of this Memcached. It is not "
        "modified. To allow the connections that it prevents, run kubectl delete -n test --wait=false "
        "networkpolicy/cache",
        "PodDisruptionBudget cache has no owner, but limits the evictions of the pods of this Memcached. It is not "
        "modified. To allow the evictions that it prevents, run kubectl delete -n test --wait=false "
        "poddisruptionbudget/cache",
    ]
