"""The request budgets of the controller, counted at the API server. Leases and Events are apart."""

import time
from collections import Counter
from typing import Any, NamedTuple

from support import controller, kube
from support.audit import Audit
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, settled

OTHER_IMAGE = "docker.io/library/memcached:1.6.39"
STATUS = "patch memcacheds/status"
PROGRESS = 10
"""Seconds between two status patches that tell of mere progress, at least."""

QUIET = 3
"""Seconds without a write after which nothing more is to come."""


class Spent(NamedTuple):
    """What the operator wrote, and in how many seconds since the audit began the object settled."""

    writes: "Counter[str]"
    seconds: float


def settle(namespace: str, since: Audit) -> Spent:
    """Wait until the object is settled and nothing more is written; what was written meanwhile."""
    settled(namespace)
    seconds = time.monotonic() - since.started
    since.quiet(QUIET, namespace)
    return Spent(since.writes(namespace), seconds)


def change(namespace: str, audit: Audit, **spec: Any) -> Spent:
    """Apply a spec, and settle."""
    since = Audit(audit.path)
    small: Object = {"resources": SMALL, **spec}
    kube.apply(memcached(namespace, **small))
    return settle(namespace, since)


def assert_within(spent: Spent, children: dict[str, int]) -> None:
    """Exactly these writes of children, and two status patches, or more where it took long: progress is told too."""
    assert {what: count for what, count in spent.writes.items() if what != STATUS} == children
    assert 1 <= spent.writes[STATUS] <= 2 + spent.seconds // PROGRESS, spent


def lists_its_pods(namespace: str) -> bool:
    """True if the status lists exactly the pods that exist."""
    status = must_get("memcacheds", namespace, "cache")["status"]
    return sorted(status["nodes"]) == sorted(kube.names(pods_of(namespace)))


def test_create_is_one_write_per_child_and_two_status_patches(namespace: str, audit: Audit) -> None:
    assert_within(change(namespace, audit), {"create deployments": 1, "create services": 1})


def test_a_change_is_one_write_per_changed_child(namespace: str, audit: Audit) -> None:
    change(namespace, audit)
    first = change(namespace, audit, size=2)
    assert_within(first, {"patch deployments": 2})  # the hand-over, once in an object's life
    assert_within(change(namespace, audit, size=1), {"patch deployments": 1})
    assert_within(change(namespace, audit, image=OTHER_IMAGE), {"patch deployments": 1})
    both = change(namespace, audit, image=OTHER_IMAGE, containerPort=11311)
    assert_within(both, {"patch deployments": 1, "patch services": 2})


def test_a_change_of_a_childs_status_costs_no_write_of_a_child(namespace: str, audit: Audit) -> None:
    change(namespace, audit)
    since = Audit(audit.path)
    kubectl("delete", "pod", kube.names(pods_of(namespace))[0], "-n", namespace)
    eventually(lambda: lists_its_pods(namespace), 60, "the status lists the pod that replaces the deleted one")
    assert_within(settle(namespace, since), {})


def test_a_touch_of_the_object_costs_nothing(namespace: str, audit: Audit) -> None:
    change(namespace, audit)
    since = Audit(audit.path)
    kubectl("annotate", "mc/cache", "-n", namespace, "touched=yes")
    kubectl("label", "deployment/cache", "-n", namespace, "added-by=somebody")
    kubectl("annotate", "service/cache", "-n", namespace, "added-by=somebody")
    assert not settle(namespace, since).writes


SPELLINGS: dict[str, Object] = {
    "nothing": {},
    "thousandths and mebibytes": {"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}},
    "a whole number": {"resources": {"limits": {"cpu": 1, "memory": 209715200}, "requests": {"cpu": "0.010"}}},
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
    },
}


def test_nothing_is_written_in_steady_state_nor_after_a_restart(namespace: str, audit: Audit) -> None:
    """A controller is started as if after a restart, reads everything again and again, and has nothing to write."""
    names = [f"cache-{number}" for number in range(len(SPELLINGS))]
    for name, spec in zip(names, SPELLINGS.values(), strict=True):
        kube.apply(memcached(namespace, name, **spec))
    for name in names:
        settled(namespace, name)
    audit.quiet(QUIET, namespace)
    before = [must_get("memcacheds", namespace, name) for name in names]
    since = Audit(audit.path)
    with controller.started(namespace, sync_period=1) as fresh:
        fresh.has_reconciled(3 * len(names))
        assert set(fresh.reconciles()) == {"success"}
    assert not since.writes(namespace)
    assert [must_get("memcacheds", namespace, name) for name in names] == before
