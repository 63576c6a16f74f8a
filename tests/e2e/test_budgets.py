"""The request budgets of the controller, counted in the audit log, without Leases and Events."""

import time
from collections import Counter
from typing import Any, NamedTuple

from support import controller, kube
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_ready

OTHER_IMAGE = "docker.io/library/memcached:1.6.39"
STATUS = "patch memcacheds/status"
PROGRESS = 10
"""Minimum seconds between two status patches that report only progress."""

QUIET = 3
"""Seconds without a write after which no more is expected."""


class Cost(NamedTuple):
    """The operator's writes, and the seconds from the start of the audit until the object was ready."""

    writes: "Counter[str]"
    seconds: float


def cost_since(namespace: str, since: Audit) -> Cost:
    """Wait until the object is ready and no more is written; return the writes."""
    wait_until_ready(namespace)
    seconds = time.monotonic() - since.started
    since.wait_until_quiet(QUIET, namespace)
    return Cost(since.writes(namespace), seconds)


def change(namespace: str, audit: Audit, **spec: Any) -> Cost:
    """Apply a spec; return the writes that this causes."""
    since = Audit(audit.path)
    small: Object = {"resources": SMALL, **spec}
    kube.apply(memcached(namespace, **small))
    return cost_since(namespace, since)


def assert_within(cost: Cost, children: dict[str, int]) -> None:
    """Assert exactly these writes of children, and two status patches, or more if progress took long."""
    assert {what: count for what, count in cost.writes.items() if what != STATUS} == children
    assert 1 <= cost.writes[STATUS] <= 2 + cost.seconds // PROGRESS, cost


def lists_its_pods(namespace: str) -> bool:
    """Whether the status lists exactly the pods that exist."""
    status = must_get("memcacheds", namespace, "cache")["status"]
    return sorted(status["nodes"]) == sorted(kube.names(pods_of(namespace)))


def test_creation_is_one_write_per_child_and_two_status_patches(namespace: str, audit: Audit) -> None:
    assert_within(change(namespace, audit), {"create deployments": 1, "create services": 1})


def test_creation_with_all_children_and_the_deletion_of_two(namespace: str, audit: Audit) -> None:
    writes = {
        f"create {plural}": 1 for plural in ("deployments", "services", "poddisruptionbudgets", "networkpolicies")
    }
    assert_within(change(namespace, audit, size=2, networkPolicy={}), writes)
    writes = {f"delete {plural}": 1 for plural in ("poddisruptionbudgets", "networkpolicies")}
    assert_within(change(namespace, audit, size=2, podDisruptionBudget={"enabled": False}), writes)


def test_one_write_per_changed_child(namespace: str, audit: Audit) -> None:
    change(namespace, audit)
    # Sizes only grow: the end of a removed pod changes the Deployment's status, and can conflict with the transfer.
    second = change(namespace, audit, size=2)
    assert_within(second, {"patch deployments": 1, "create poddisruptionbudgets": 1})
    assert_within(change(namespace, audit, size=3), {"patch deployments": 1})
    first = change(namespace, audit, size=3, image=OTHER_IMAGE)
    assert_within(first, {"patch deployments": 2})  # the first apply also transfers the field ownership
    both = change(namespace, audit, size=3, image=OTHER_IMAGE, containerPort=11311)
    assert_within(both, {"patch deployments": 1, "patch services": 2})
    assert_within(change(namespace, audit, image=OTHER_IMAGE, containerPort=11311, size=2), {"patch deployments": 1})


def test_status_change_of_a_child_causes_no_write_of_a_child(namespace: str, audit: Audit) -> None:
    change(namespace, audit)
    since = Audit(audit.path)
    kubectl("delete", "pod", kube.names(pods_of(namespace))[0], "-n", namespace)
    eventually(lambda: lists_its_pods(namespace), 60, "the status lists the pod that replaces the deleted one")
    assert_within(cost_since(namespace, since), {})


def test_metadata_changes_cause_no_writes(namespace: str, audit: Audit) -> None:
    change(namespace, audit, size=2, networkPolicy={})
    since = Audit(audit.path)
    kubectl("annotate", "mc/cache", "-n", namespace, "touched=yes")
    kubectl("label", "deployment/cache", "-n", namespace, "added-by=user")
    for child in ("service/cache", "poddisruptionbudget/cache", "networkpolicy/cache"):
        kubectl("annotate", child, "-n", namespace, "added-by=user")
    assert not cost_since(namespace, since).writes


SPELLINGS: dict[str, Object] = {
    "nothing": {},
    "decimal fractions and mebibytes": {"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}},
    "integers": {"resources": {"limits": {"cpu": 1, "memory": 209715200}, "requests": {"cpu": "0.010"}}},
    "everything": {
        "size": 2,
        "containerPort": 11311,
        "image": OTHER_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        "cache": {"memory": "32768Ki"},
        "resources": {
            "requests": {"cpu": "0.010", "memory": "1e8", "ephemeral-storage": "1024Ki"},
            "limits": {"cpu": "2000m", "memory": "0.25Gi", "ephemeral-storage": "1024Mi"},
        },
        "podTemplate": {
            "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/note": "text"}},
            "spec": {
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "tolerations": [{"key": "reserved", "operator": "Exists"}, {"operator": "Equal", "key": "a"}],
                "affinity": {
                    "podAntiAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "podAffinityTerm": {
                                    "topologyKey": "kubernetes.io/hostname",
                                    "labelSelector": {"matchLabels": {"team": "a"}},
                                },
                            }
                        ]
                    }
                },
                "topologySpreadConstraints": [
                    {"maxSkew": 2, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
                ],
                "priorityClassName": "",
                "serviceAccountName": "default",
                "terminationGracePeriodSeconds": 30,
                "securityContext": {"runAsUser": 1002, "fsGroup": 1002, "supplementalGroups": [1003]},
            },
        },
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "rollout": {
            "maxUnavailable": "0%",
            "maxSurge": "50%",
            "minReadySeconds": 1,
            "paused": False,
            "restartedAt": "2026-11-22T10:00:00+01:00",
        },
        "networkPolicy": {
            "from": [
                {"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}},
                {"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.128/25"]}},
            ]
        },
        "service": {"labels": {"team": "a"}, "annotations": {"example.com/note": "text"}},
    },
}


def test_no_writes_in_steady_state_and_after_a_restart(namespace: str, audit: Audit) -> None:
    """A second controller starts, resyncs several times, and writes nothing."""
    names = [f"cache-{number}" for number in range(len(SPELLINGS))]
    for name, spec in zip(names, SPELLINGS.values(), strict=True):
        kube.apply(memcached(namespace, name, **spec))
    for name in names:
        wait_until_ready(namespace, name)
    audit.wait_until_quiet(QUIET, namespace)
    before = [must_get("memcacheds", namespace, name) for name in names]
    since = Audit(audit.path)
    with controller.started(namespace, sync_period=1) as restarted:
        restarted.wait_for_reconciles(3 * len(names))
        assert set(restarted.reconciles()) == {"success"}
    assert not since.writes(namespace)
    assert [must_get("memcacheds", namespace, name) for name in names] == before
