"""The admission policies: what a stolen token of the controller's account cannot do, and what the controller can do."""

import pytest

from integration import confined
from integration.confined import (
    ACCOUNT_NAMESPACE,
    DRY_RUN,
    LABELS,
    MINIMAL,
    Account,
    Work,
    config_map,
    deployment,
    dry_run,
    merged,
    own_name,
    owner,
    prepare,
    service,
)
from integration.control_plane import ControlPlane, until
from integration.issuing import CONFIGURATIONS, Installation, configuration
from memcached_operator.certificates.issuer import WebhookNames
from memcached_operator.certificates.pki import LIFETIME
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from memcached_operator.kube.resource import Key, Object, Resource, key_of
from support import policies

pytestmark = pytest.mark.server

FOREIGN = "kube-system"
WITHOUT_STATUS = (kinds.NETWORK_POLICIES, kinds.CONFIG_MAPS, kinds.POD_MONITORS, kinds.PROMETHEUS_RULES)
ANY_NAME = tuple(resource for resource in MINIMAL if resource != kinds.CONFIG_MAPS)
"""The resources of children whose names do not depend on that of the owner."""
DRY_RUN_BODY = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}


ADDRESSES: dict[str, tuple[Object, str]] = {
    "another name": ({"spec": {"type": "ExternalName", "externalName": "evil.example.com"}}, "spec.type"),
    "load balancer": ({"spec": {"type": "LoadBalancer"}}, "spec.type"),
    "external addresses": ({"spec": {"externalIPs": ["192.0.2.1"]}}, "spec.externalIPs"),
    "other pods": ({"spec": {"selector": {"app.kubernetes.io/managed-by": "Helm"}}}, "spec.selector"),
    "all pods of a name": ({"spec": {"selector": {"app.kubernetes.io/managed-by": None}}}, "spec.selector"),
    "no pods": ({"spec": {"selector": None}}, "spec.selector"),
}
"""Changes of a Service, and the expected part of each denial."""
MANAGED_BY = "app.kubernetes.io/managed-by"
CONFIG_MAP = {**owner("ConfigMap", "v1", "of-no-other-object"), "controller": False}
META: dict[str, tuple[Object, str]] = {
    name: ({"metadata": change}, message)
    for name, (change, message) in {
        "no reference": ({"ownerReferences": None}, "controller reference"),
        "no controller": ({"ownerReferences": [{**owner(), "controller": False}]}, "controller reference"),
        "another kind": ({"ownerReferences": [owner("ConfigMap", "v1")]}, "controller reference"),
        "a group with a similar name": (
            {"ownerReferences": [owner(api_version="cache.example.com.evil.example.com/v1")]},
            "controller reference",
        ),
        "our kind in our other group": (
            {"ownerReferences": [owner("AppService", "cache.example.com/v1")]},
            "controller reference",
        ),
        "a version that does not exist": (
            {"ownerReferences": [owner(api_version="cache.example.com/v9")]},
            "controller reference",
        ),
        "no version": ({"ownerReferences": [owner("v1/Memcached", "cache.example.com")]}, "controller reference"),
        "a part of the group in the kind": (
            {"ownerReferences": [owner("Memcached.cache", "example.com/v1")]},
            "controller reference",
        ),
        "another owner": ({"ownerReferences": [owner(), CONFIG_MAP]}, "adds only a controller"),
        "no label": ({"labels": {MANAGED_BY: None}}, MANAGED_BY),
        "another label": ({"labels": {MANAGED_BY: "Helm"}}, MANAGED_BY),
        "finalizers": ({"finalizers": ["example.com/held"]}, "metadata.finalizers"),
        "finalizer of the garbage collector": ({"finalizers": ["orphan"]}, "metadata.finalizers"),
    }.items()
}
"""Metadata changes of all kinds that would create unowned or blocked objects, and the expected part of each denial."""
ROWS = {
    f"{resource.kind}: {name}": (resource, *row)
    for resource in MINIMAL
    for name, row in (META | (ADDRESSES if resource == kinds.SERVICES else {})).items()
}


@pytest.mark.parametrize(("resource", "change", "message"), ROWS.values(), ids=ROWS.keys())
def test_values_that_are_never_built_are_denied(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource, change: Object, message: str
) -> None:
    denials = confined.denials(stolen_token, resource, children[resource], change)
    assert [operation for operation, denial in denials.items() if message not in denial] == [], denials


@pytest.mark.parametrize("api_version", ["cache.example.com/v1", "cache.example.com/v1alpha1"])
def test_deployment_with_a_forged_owner_is_garbage_collected(
    plane: ControlPlane, stolen_token: Account, api_version: str
) -> None:
    key = Key(kinds.DEPLOYMENTS, ACCOUNT_NAMESPACE, "forged")
    stolen_token.create(kinds.DEPLOYMENTS, deployment("forged", owner(api_version=api_version)))
    until(lambda: plane.get(key) is None)


@pytest.mark.parametrize("resource", MINIMAL, ids=lambda resource: resource.kind)
def test_deletion_that_orphans_dependents_is_denied(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource
) -> None:
    path = resource.path(ACCOUNT_NAMESPACE, children[resource]["metadata"]["name"])
    for options in ({"propagationPolicy": "Orphan"}, {"orphanDependents": True}):
        denied = stolen_token.denial(lambda client, body=options: client.request("DELETE", path, body | DRY_RUN_BODY))
        assert "with its dependents" in denied
    for policy in ("Background", "Foreground"):
        body = {"propagationPolicy": policy, **DRY_RUN_BODY}
        assert not stolen_token.denial(lambda client, body=body: client.request("DELETE", path, body))


@pytest.mark.parametrize("resource", ANY_NAME, ids=lambda resource: resource.kind)
def test_removed_label_can_be_restored(
    plane: ControlPlane, stolen_token: Account, memcached: Object, resource: Resource
) -> None:
    key = Key(resource, ACCOUNT_NAMESPACE, own_name(resource, "unlabelled"))
    reference = owner(uid=memcached["metadata"]["uid"])
    child = merged(MINIMAL[resource]("unlabelled", reference), {"metadata": {"labels": None}})
    plane.call(lambda client: client.create(key, child))
    try:
        live, path = wait_until_observed(plane, key), resource.path(ACCOUNT_NAMESPACE, key.name)
        assert not stolen_token.denial(prepare(key))
        assert not stolen_token.denial(dry_run("PUT", resource, merged(live, {"metadata": {"labels": LABELS}})))
        assert MANAGED_BY in stolen_token.denial(dry_run("PUT", resource, merged(live, OTHER_SPEC[resource])))
        assert not stolen_token.denial(lambda client: client.request("DELETE", path, params=DRY_RUN))
    finally:
        plane.delete(key)


def test_owners_and_finalizers_added_by_others_do_not_block_updates(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    key, reference = Key(kinds.SERVICES, ACCOUNT_NAMESPACE, "shared"), owner(uid=memcached["metadata"]["uid"])
    other = plane.create(kinds.CONFIG_MAPS, {"metadata": {"generateName": "owner-", "namespace": ACCOUNT_NAMESPACE}})[
        "metadata"
    ]
    theirs = {**CONFIG_MAP, "name": other["name"], "uid": other["uid"]}
    meta = {"ownerReferences": [reference, theirs], "finalizers": ["example.com/held"]}
    live = plane.create(kinds.SERVICES, merged(service("shared"), {"metadata": meta}))
    try:
        assert not stolen_token.denial(dry_run("PUT", kinds.SERVICES, merged(live, OTHER_SPEC[kinds.SERVICES])))
    finally:
        plane.change(key, {"metadata": {"finalizers": None}})
        plane.delete(key)


def test_other_accounts_are_not_affected(
    plane: ControlPlane, stolen_token: Account, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other_account = confined.create_account(plane, "other", tmp_path_factory.mktemp("other"))
    for resource, change, _ in ROWS.values():
        new = merged(MINIMAL[resource]("new"), change)
        assert stolen_token.denial(dry_run("POST", resource, new))
        assert not other_account.denial(dry_run("POST", resource, new))
    for work in confined.forbidden().values():
        assert not other_account.denial(work)


def foreign(plane: ControlPlane, resource: Resource, *owners: Object) -> Object:
    """Create an object in kube-system that does not belong to the controller; return it as stored."""
    obj = merged(MINIMAL[resource]("foreign", *owners), {"metadata": {"namespace": FOREIGN}})
    if not owners:
        obj = merged(obj, {"metadata": {"ownerReferences": None, "labels": None}})
    return plane.create(resource, obj)


def claimed(obj: Object) -> Object:
    """The object with a reference to a Memcached in place of its own."""
    return merged(obj, {"metadata": {"ownerReferences": [owner()], "labels": LABELS}})


def attempts(resource: Resource, live: Object) -> dict[str, Work]:
    """Requests of an attacker for a foreign object."""
    meta = {name: live["metadata"][name] for name in ("name", "namespace")}
    labelled = {"metadata": {**meta, "labels": {**LABELS, "stolen": "yes"}}}
    scale = [{"op": "add", "path": "/metadata/labels", "value": LABELS}]
    path = resource.path(FOREIGN, meta["name"])
    found: dict[str, Work] = {
        "label it": dry_run("PATCH", resource, labelled, MERGE_PATCH),
        "label it by JSON patch": lambda client: client.request("PATCH", path, scale, JSON_PATCH, DRY_RUN),
        "claim it": dry_run("PUT", resource, claimed(live)),
        "apply over it": dry_run("PATCH", resource, claimed(MINIMAL[resource]("foreign")) | labelled, APPLY_PATCH),
        "delete it": lambda client: client.request("DELETE", path, params=DRY_RUN),
        "delete all": lambda client: client.request("DELETE", resource.path(FOREIGN), params=DRY_RUN),
    }
    if resource not in WITHOUT_STATUS:
        status = {"metadata": meta, "status": {}}
        found["change its status"] = dry_run("PATCH", resource, status, MERGE_PATCH, "status")
    if resource in (kinds.DEPLOYMENTS, kinds.STATEFULSETS):
        found["scale it"] = dry_run(
            "PATCH", resource, {"metadata": meta, "spec": {"replicas": 9}}, MERGE_PATCH, "scale"
        )
    return found


@pytest.mark.parametrize("resource", MINIMAL, ids=lambda resource: resource.kind)
@pytest.mark.parametrize("controlled", [False, True], ids=["unowned", "with our labels"])
def test_foreign_object_cannot_be_changed(
    plane: ControlPlane, stolen_token: Account, resource: Resource, controlled: bool
) -> None:
    other = plane.create(kinds.CONFIG_MAPS, {"metadata": {"generateName": "owner-", "namespace": FOREIGN}})["metadata"]
    owners = [{**owner("ConfigMap", "v1", other["uid"]), "name": other["name"]}] if controlled else []
    live = foreign(plane, resource, *owners)
    try:
        tried = attempts(resource, live)
        assert [name for name, work in tried.items() if not stolen_token.denial(work)] == []
    finally:
        plane.delete(Key(resource, FOREIGN, own_name(resource, "foreign")))


@pytest.mark.parametrize("resource", MINIMAL, ids=lambda resource: resource.kind)
def test_child_cannot_lose_its_controller_reference(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource
) -> None:
    live = children[resource]
    assert not stolen_token.denial(dry_run("PUT", resource, live))
    if resource not in WITHOUT_STATUS:
        current = stolen_token.must_get(key_of(resource, live))  # a count of the status cannot be lowered
        assert "subresources" in stolen_token.denial(dry_run("PUT", resource, current, subresource="status"))
    for references in (None, [owner("ConfigMap", "v1")]):
        changed = merged(live, {"metadata": {"ownerReferences": references}})
        assert "controller reference" in stolen_token.denial(dry_run("PUT", resource, changed))


@pytest.mark.parametrize("resource", [kinds.DEPLOYMENTS, kinds.STATEFULSETS], ids=lambda resource: resource.kind)
def test_child_can_be_scaled_only_without_the_subresource(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource
) -> None:
    scaled = merged(children[resource], {"spec": {"replicas": 3}})
    assert not stolen_token.denial(dry_run("PUT", resource, scaled))
    scale = {"metadata": {"name": "child", "namespace": ACCOUNT_NAMESPACE}, "spec": {"replicas": 3}}
    assert "subresources" in stolen_token.denial(dry_run("PATCH", resource, scale, MERGE_PATCH, "scale"))


def test_config_map_that_others_read_by_its_name_is_denied(stolen_token: Account) -> None:
    for name in ("coredns-custom", "connection", "other-connection"):
        other = merged(config_map("child"), {"metadata": {"name": name}})
        assert "metadata.name" in stolen_token.denial(dry_run("POST", kinds.CONFIG_MAPS, other))


def test_clients_cannot_be_given_other_variables(stolen_token: Account, children: dict[Resource, Object]) -> None:
    """Some change what a program runs, and clients may read all keys as their environment."""
    for change in ({"data": {"NODE_OPTIONS": "--require=/tmp/a"}}, {"binaryData": {"a": "YQ=="}}):
        new, changed = (merged(each, change) for each in (config_map("child"), children[kinds.CONFIG_MAPS]))
        assert "data: " in stolen_token.denial(dry_run("PUT", kinds.CONFIG_MAPS, changed))
        fresh = merged(new, {"metadata": {"name": "child-connection"}})
        assert "data: " in stolen_token.denial(dry_run("PATCH", kinds.CONFIG_MAPS, fresh, MERGE_PATCH))


OTHER_SPEC: dict[Resource, Object] = {
    kinds.DEPLOYMENTS: {"spec": {"replicas": 3}},
    kinds.STATEFULSETS: {"spec": {"replicas": 3}},
    kinds.CONFIG_MAPS: {"data": {"servers": "b:1"}},
    kinds.SERVICES: {"spec": {"publishNotReadyAddresses": True}},
    kinds.POD_DISRUPTION_BUDGETS: {"spec": {"maxUnavailable": "50%"}},
    kinds.NETWORK_POLICIES: {
        "spec": {
            "ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 81, "protocol": "TCP"}]}]
        }
    },
    kinds.POD_MONITORS: {"spec": {"podMetricsEndpoints": [{"port": "metrics", "interval": "30s"}]}},
    kinds.PROMETHEUS_RULES: {"spec": {"groups": None}},
}
"""A harmless change of each kind."""


def wait_until_observed(plane: ControlPlane, key: Key) -> Object:
    """Wait until the controller of the kind has written its annotation and conditions; return the object."""
    if key.resource in (kinds.DEPLOYMENTS, kinds.POD_DISRUPTION_BUDGETS):
        until(lambda: plane.must_get(key).get("status", {}).get("conditions"))
    return plane.must_get(key)


@pytest.mark.parametrize("resource", ANY_NAME, ids=lambda resource: resource.kind)
def test_orphan_can_only_be_adopted_or_deleted(plane: ControlPlane, stolen_token: Account, resource: Resource) -> None:
    key = Key(resource, ACCOUNT_NAMESPACE, own_name(resource, "orphan"))
    orphaned = merged(MINIMAL[resource]("orphan"), {"metadata": {"ownerReferences": None}})
    plane.call(lambda client: client.create(key, orphaned))
    try:
        orphan, path = wait_until_observed(plane, key), resource.path(ACCOUNT_NAMESPACE, key.name)
        assert not stolen_token.denial(prepare(key))
        assert not stolen_token.denial(
            dry_run("PUT", resource, merged(orphan, {"metadata": {"ownerReferences": [owner()]}}))
        )
        changes = [{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/held"]}}]
        # Without this label the orphan would be unowned.
        changes += [{"metadata": {"labels": {"app.kubernetes.io/name": None}}}, OTHER_SPEC[resource]]
        changes += [{"metadata": {"annotations": {"a": "b"}}}]
        denials = [stolen_token.denial(dry_run("PUT", resource, merged(orphan, change))) for change in changes]
        assert [denial for denial in denials if "controller reference" not in denial] == []
        assert not stolen_token.denial(lambda client: client.request("DELETE", path, params=DRY_RUN))
    finally:
        plane.delete(key)


def test_service_type_changed_by_others_can_be_restored(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    ours = service("exposed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(kinds.SERVICES, merged(ours, {"spec": {"type": "LoadBalancer"}}))
    try:
        # The first write migrates the field ownership.
        assert not stolen_token.denial(
            dry_run("PUT", kinds.SERVICES, merged(live, {"metadata": {"annotations": {"a": "b"}}}))
        )
        assert not stolen_token.denial(dry_run("PUT", kinds.SERVICES, merged(live, {"spec": {"type": "NodePort"}})))
    finally:
        plane.delete(Key(kinds.SERVICES, ACCOUNT_NAMESPACE, "exposed"))


def test_external_addresses_added_by_others_do_not_block_updates(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    ours = service("addressed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(kinds.SERVICES, merged(ours, {"spec": {"externalIPs": ["192.0.2.1"]}}))
    try:
        ports = {"spec": {"ports": [{"port": 81}]}}
        assert not stolen_token.denial(dry_run("PUT", kinds.SERVICES, merged(live, ports)))
        more = {"spec": {"externalIPs": ["192.0.2.1", "192.0.2.2"]}}
        assert "externalIPs" in stolen_token.denial(dry_run("PUT", kinds.SERVICES, merged(live, more)))
    finally:
        plane.delete(Key(kinds.SERVICES, ACCOUNT_NAMESPACE, "addressed"))


WEBHOOK: dict[str, Object] = {
    "service": {"clientConfig": {"service": {"name": "evil"}}},
    "namespace": {"clientConfig": {"service": {"namespace": "evil"}}},
    "path": {"clientConfig": {"service": {"path": "/evil"}}},
    "port": {"clientConfig": {"service": {"port": 444}}},
    "address": {"clientConfig": {"service": None, "url": "https://evil.example.com"}},
    "failure policy": {"failurePolicy": "Fail"},
    "match policy": {"matchPolicy": "Exact"},
    "namespaces": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    "objects": {"objectSelector": {"matchLabels": {"a": "b"}}},
    "seconds": {"timeoutSeconds": 1},
    "versions": {"admissionReviewVersions": ["v1", "v1beta1"]},
    "name": {"name": "evil.example.com"},
    "condition": {"matchConditions": [{"name": "always", "expression": "false"}]},
    "no condition": {"matchConditions": None},
    "rules": {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]},
}
"""Changes of the first webhook."""
METADATA: dict[str, Object] = {
    "no labels": {"labels": None},
    "labels": {"labels": {"a": "b"}},
    "annotations": {"annotations": {"cert-manager.io/inject-ca-from": "evil/evil"}},
    "owner": {"ownerReferences": [owner()]},
    "finalizers": {"finalizers": ["example.com/held"]},
}


@pytest.mark.parametrize("resource", CONFIGURATIONS, ids=lambda resource: resource.kind)
def test_only_the_bundle_of_a_webhook_configuration_can_be_changed(
    plane: ControlPlane, stolen_token: Account, resource: Resource
) -> None:
    initial = configuration(Key(resource, "", "confined"))
    initial["webhooks"][0] |= {"matchConditions": [{"name": "always", "expression": "true"}]}
    live = plane.create(resource, merged(initial, {"metadata": {"labels": {"ours": "yes"}}}))
    first, second = live["webhooks"]
    changes = {name: {**live, "webhooks": [merged(first, change), second]} for name, change in WEBHOOK.items()}
    changes |= {name: merged(live, {"metadata": change}) for name, change in METADATA.items()}
    changes["one webhook removed"] = {**live, "webhooks": [first]}
    changes["no webhooks"] = {**live, "webhooks": None}
    changes["one webhook added"] = {**live, "webhooks": [first, second, {**second, "name": "hook2.example.com"}]}
    if resource.kind == "MutatingWebhookConfiguration":
        changes["reinvocation policy"] = {
            **live,
            "webhooks": [merged(first, {"reinvocationPolicy": "IfNeeded"}), second],
        }
    try:
        tried = {name: stolen_token.denial(dry_run("PUT", resource, change)) for name, change in changes.items()}
        assert [name for name, denial in tried.items() if "changes only" not in denial] == []
        trusting = [merged(hook, {"clientConfig": {"caBundle": "YQ=="}}) for hook in live["webhooks"]]
        assert not stolen_token.denial(dry_run("PUT", resource, {**live, "webhooks": trusting}))
        live = plane.change(Key(resource, "", "confined"), {"metadata": {"managedFields": [{}]}})
        assert "managedFields" not in live["metadata"], "managedFields must be cleared"
        assert not stolen_token.denial(dry_run("PUT", resource, {**live, "webhooks": trusting}))
        path = resource.path(None, "confined")
        assert "creates and deletes no" in stolen_token.denial(lambda client: client.request("DELETE", path))
    finally:
        plane.delete(Key(resource, "", "confined"))


SECRET = {"name": "memcached-operator-webhook-cert", "namespace": ACCOUNT_NAMESPACE}
ACCOUNT_TOKEN = {"annotations": {"kubernetes.io/service-account.name": confined.ACCOUNT}}
SECRETS_DENIED: dict[str, Object] = {
    "another name": {"metadata": {**SECRET, "name": "other"}, "type": "kubernetes.io/tls"},
    "a generated name": {
        "metadata": {"generateName": "other-", "namespace": ACCOUNT_NAMESPACE},
        "type": "kubernetes.io/tls",
    },
    "a token": {"metadata": {**SECRET, **ACCOUNT_TOKEN}, "type": "kubernetes.io/service-account-token"},
    "no type": {"metadata": SECRET},
}


@pytest.mark.parametrize("secret", SECRETS_DENIED.values(), ids=SECRETS_DENIED.keys())
def test_other_secrets_cannot_be_created(stolen_token: Account, secret: Object) -> None:
    data = {"data": {"tls.crt": "", "tls.key": ""}}
    assert "only the Secret memcached-operator-webhook-cert" in stolen_token.denial(
        dry_run("POST", kinds.SECRETS, data | secret)
    )


def test_the_controller_can_issue_and_renew_certificates(
    plane: ControlPlane, stolen_token: Account, namespace: str
) -> None:
    names = WebhookNames(namespace, SECRET["name"], "webhook", f"{namespace}-mutating", f"{namespace}-validating")
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


def test_type_checking_has_no_warnings(plane: ControlPlane, stolen_token: Account) -> None:
    del stolen_token  # waits until the controller manager has checked all policies
    found = plane.call(lambda client: client.request("GET", policies.POLICIES))["items"]
    warnings = {each["metadata"]["name"]: each["status"].get("typeChecking", {}) for each in found}
    assert {each["metadata"]["name"]: {} for each in policies.policies()}.items() <= warnings.items()
