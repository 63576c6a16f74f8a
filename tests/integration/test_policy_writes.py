"""The admission policies: all that the controller writes is allowed."""

from typing import Any

import pytest

import goldens
from integration.confined import ACCOUNT_NAMESPACE, CHILDREN, Account, dry_run, own_name
from integration.control_plane import ControlPlane, until
from integration.issuing import Installation, configuration
from integration.test_apply import Owner
from memcached_api.annotations import RETRY_ANNOTATION
from memcached_operator.certificates.issuer import WebhookNames
from memcached_operator.certificates.pki import LIFETIME
from memcached_operator.engine.events.controller_retries import RETRY_MANAGER
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.ownership import annotation_patch
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import JSON_PATCH
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

pytestmark = pytest.mark.server

TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
NODES = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
AFFINITY = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NODES},
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {**TERM}}],
    },
}
SPREAD = {
    "maxSkew": 1,
    "minDomains": 2,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "matchLabelKeys": ["pod-template-hash"],
    "nodeAffinityPolicy": "Honor",
    "nodeTaintsPolicy": "Ignore",
}
POD = {
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "cache", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
    "affinity": AFFINITY,
    "topologySpreadConstraints": [SPREAD],
    "priorityClassName": "caches",
    "runtimeClassName": "gvisor",
    "serviceAccountName": "caches",
    "terminationGracePeriodSeconds": 60,
    "securityContext": {
        "runAsUser": 1002,
        "runAsGroup": 0,
        "runAsNonRoot": True,
        "fsGroup": 0,
        "fsGroupChangePolicy": "OnRootMismatch",
        "supplementalGroups": [0],
        "seccompProfile": {"type": "Localhost", "localhostProfile": "cache.json"},
    },
}
SPEC: Object = {
    "size": 2,
    "image": "example.com/memcached:1",
    "podTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"example.com/a": "b"}}, "spec": POD},
    "podDisruptionBudget": {"maxUnavailable": 1},
    "rollout": {
        "maxUnavailable": 0,
        "maxSurge": "25%",
        "minReadySeconds": 5,
        "paused": True,
        "restartedAt": "2026-01-01T00:00:00Z",
    },
    "networkPolicy": {
        "from": [
            {"podSelector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {}},
            {"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}},
        ]
    },
    "service": {"labels": {"team": "a"}, "annotations": {"example.com/a": "b"}},
    "inheritedMetadata": {"labels": {"cost": "a"}, "annotations": {"example.com/cost": "b"}},
    "monitoring": {
        "podMonitor": {"interval": "30s", "labels": {"team": "a"}},
        "rules": {"labels": {"team": "a"}},
        "tls": {},
    },
    "tls": {
        "secretName": "cache-tls",
        "clientAuth": "Require",
        "clientCASecretName": "clients",
        "port": 11299,
        "plaintext": "Enabled",
    },
    "auth": {"secretName": "cache-auth"},
    "agent": {"image": "example.com/agent:1", "resources": {"limits": {"cpu": "1"}}},
}
"""A Memcached with every field of which the Deployment, or another child, has something that others lack."""
OWNS = (
    *(kinds.DEPLOYMENTS, kinds.SERVICES, kinds.POD_DISRUPTION_BUDGETS),
    *(kinds.NETWORK_POLICIES, kinds.POD_MONITORS, kinds.PROMETHEUS_RULES),
)
STABLE_SPEC: Object = {**SPEC, "identity": "Stable", "rollout": {"paused": False}}
STABLE_OWNS = (kinds.STATEFULSETS, kinds.SERVICES, kinds.CONFIG_MAPS, *OWNS[2:])


def created(stolen_token: Account, namespace: str, *, stable: bool = False) -> Owner:
    """A Memcached with SPEC or STABLE_SPEC, and all its children."""
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    meta, spec = {"name": "cache", "namespace": namespace}, STABLE_SPEC if stable else SPEC
    owned = Owner(stolen_token, stolen_token.create(MEMCACHEDS, {**kind, "metadata": meta, "spec": spec}))
    assert owned.apply() == {f"create {resource.plural}": 1 for resource in (STABLE_OWNS if stable else OWNS)}
    return owned


def test_the_writes_for_slots_are_allowed(stolen_token: Account, namespace: str) -> None:
    owned = created(stolen_token, namespace, stable=True)
    owned.spec(containerPort=11212, service={"perPod": True, "labels": {"team": "b"}}, rollout={"paused": True})
    # The Service and the ConfigMap change; the pod template waits for the end of the pause.
    assert owned.apply().keys() >= {"create services", "patch services", "patch configmaps", "patch statefulsets"}
    owned.spec(rollout={"paused": False}, size=1, service=None)
    owned.relist(STABLE_OWNS)
    assert owned.apply().keys() >= {"delete services", "patch services", "patch configmaps", "patch statefulsets"}
    assert owned.problems == []


def test_the_controllers_writes_are_allowed(stolen_token: Account, namespace: str) -> None:
    owned = created(stolen_token, namespace)
    owned.spec(
        size=3,
        containerPort=11212,
        podTemplate={"metadata": {"labels": {"team": "b"}}, "spec": {"serviceAccountName": "others"}},
        rollout={"paused": False, "restartedAt": "2026-01-02T00:00:00Z"},
        podDisruptionBudget={"maxUnavailable": "50%"},
        service={"annotations": {"example.com/a": "c"}},
        monitoring={"podMonitor": {"interval": "1m"}, "rules": {"labels": {"team": "b"}}},
    )
    assert owned.apply().keys() == {f"patch {resource.plural}" for resource in OWNS}
    assert owned.live(kinds.SERVICES)["spec"]["ports"][0]["port"] == 11212
    assert owned.live(kinds.NETWORK_POLICIES)["spec"]["ingress"][0]["ports"][0]["port"] == 11212
    others = OWNS[1:]

    def deleted() -> bool:
        # A deletion conflicts with a change of the budget's status.
        owned.relist(OWNS)
        assert owned.apply([owned.desired()[0]]).keys() <= {f"delete {resource.plural}" for resource in others}
        return all(stolen_token.get(owned.key(resource)) is None for resource in others)

    until(deleted)
    owned.relist(OWNS)
    assert owned.apply() == {f"create {resource.plural}": 1 for resource in others}
    assert owned.problems == []


@pytest.mark.parametrize("resource", [kinds.STATEFULSETS, kinds.DEPLOYMENTS], ids=lambda resource: resource.kind)
def test_controllers_of_workloads_can_be_made_to_try_again(
    stolen_token: Account, namespace: str, resource: Resource
) -> None:
    owned = created(stolen_token, namespace, stable=resource == kinds.STATEFULSETS)
    key, at, manager = owned.key(resource), "2026-01-01T00:00:00Z", {"fieldManager": RETRY_MANAGER}
    path, patch = resource.path(key.namespace, key.name), annotation_patch(owned.live(resource), RETRY_ANNOTATION, at)
    changed = stolen_token.call(lambda client: client.request("PATCH", path, patch, JSON_PATCH, manager))
    assert changed["metadata"]["annotations"].items() >= {RETRY_ANNOTATION: at}.items()
    owned.relist({*OWNS, *STABLE_OWNS})
    assert owned.apply() == {}, "it is no drift"


@pytest.mark.parametrize("resource", CHILDREN, ids=lambda resource: resource.kind)
def test_the_controller_can_adopt_an_orphan(
    plane: ControlPlane, stolen_token: Account, namespace: str, resource: Resource
) -> None:
    owned = created(stolen_token, namespace, stable=resource in (kinds.STATEFULSETS, kinds.CONFIG_MAPS))
    key = owned.key(resource)._replace(name=own_name(resource, "cache"))
    plane.change(key, {"metadata": {"ownerReferences": None}})
    owned.relist({*OWNS, *STABLE_OWNS})
    assert owned.apply().keys() == {f"patch {resource.plural}"}
    assert owned.problems == []
    (reference,) = plane.must_get(key)["metadata"]["ownerReferences"]
    assert reference["uid"] == owned.cr["metadata"]["uid"]


SHAPES = {f"{kind}/{shape}": path for kind in goldens.KINDS for shape, path in goldens.paths(kind).items()}


@pytest.mark.parametrize("path", SHAPES.values(), ids=SHAPES.keys())
def test_every_golden_can_be_created(stolen_token: Account, path: Any) -> None:
    cr, *_ = goldens.objects(path)
    cr["metadata"] |= {"namespace": ACCOUNT_NAMESPACE, "uid": "of-no-object"}
    resources = {resource.kind: resource for resource in CHILDREN}
    for child in goldens.children(cr):  # the rules of a PrometheusRule contain the namespace
        complete_child = build_intent(cr, child)
        # The node port may be allocated to another Service.
        for port in complete_child.get("spec", {}).get("ports", ()):
            port.pop("nodePort", None)
        assert not stolen_token.denial(dry_run("POST", resources[child["kind"]], complete_child))


def test_the_controller_can_issue_and_renew_certificates(
    plane: ControlPlane, stolen_token: Account, namespace: str
) -> None:
    names = WebhookNames(
        namespace, "memcached-operator-webhook-cert", "webhook", f"{namespace}-mutating", f"{namespace}-validating"
    )
    installed = Installation(stolen_token, names)
    for key in installed.configurations:
        plane.create(key.resource, configuration(key))
    try:
        installed.check()
        old = installed.pair()
        installed.check(after=LIFETIME * 0.7)
        assert installed.bundles() == [installed.pair().ca + old.ca] * 4
    finally:
        for key in installed.configurations:
            plane.delete(key)
