"""The admission policies: what a stolen token of the controller's account cannot do, and what the controller can."""

import pytest

from integration import confined
from integration.confined import DRY_RUN, HOME, LABELS, LEAST, Account, Work, asked, deployment, merged, owner, service
from integration.control_plane import ControlPlane, until
from integration.issuing import CONFIGURATIONS, Installation, configuration
from integration.test_apply import CREATED, Owner
from memcached_operator.certificates.issuer import WebhookNames
from memcached_operator.certificates.pki import LIFETIME
from memcached_operator.kube.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from memcached_operator.kube.resource import DEPLOYMENTS, SECRETS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.reconcile.ownership import migration_patch
from support import policies

FOREIGN = "kube-system"
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
DRY_RUN_BODY = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}


ADDRESSES: dict[str, tuple[Object, str]] = {
    "another name": ({"spec": {"type": "ExternalName", "externalName": "evil.example.com"}}, "spec.type"),
    "load balancer": ({"spec": {"type": "LoadBalancer"}}, "spec.type"),
    "external addresses": ({"spec": {"externalIPs": ["192.0.2.1"]}}, "spec.externalIPs"),
    "other pods": ({"spec": {"selector": {"app.kubernetes.io/managed-by": "Helm"}}}, "spec.selector"),
    "all pods of a name": ({"spec": {"selector": {"app.kubernetes.io/managed-by": None}}}, "spec.selector"),
    "no pods": ({"spec": {"selector": None}}, "spec.selector"),
}
"""Changes of a Service, and what is said against each."""
MANAGED_BY = "app.kubernetes.io/managed-by"
CONFIG_MAP = {**owner("ConfigMap", "v1", "of-no-other-object"), "controller": False}
META: dict[str, tuple[Object, str]] = {
    name: ({"metadata": change}, said)
    for name, (change, said) in {
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
"""Changes of both that would keep an object without an owner, and what is said against each."""
ROWS = {
    f"{resource.kind}: {name}": (resource, *row)
    for resource, rows in ((DEPLOYMENTS, META), (SERVICES, ADDRESSES | META))
    for name, row in rows.items()
}


@pytest.mark.parametrize(("resource", "change", "said"), ROWS.values(), ids=ROWS.keys())
def test_what_is_never_built_is_neither_created_nor_put_into_a_child(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource, change: Object, said: str
) -> None:
    told = confined.denials(stolen_token, resource, children[resource], change)
    assert [way for way, message in told.items() if said not in message] == [], told


@pytest.mark.parametrize("api_version", ["cache.example.com/v1", "cache.example.com/v1alpha1"])
def test_a_deployment_with_a_forged_owner_is_deleted(
    plane: ControlPlane, stolen_token: Account, api_version: str
) -> None:
    key = Key(DEPLOYMENTS, HOME, "forged")
    stolen_token.create(DEPLOYMENTS, deployment("forged", owner(api_version=api_version)))
    until(lambda: plane.get(key) is None)


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_a_child_is_not_deleted_without_its_dependents(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource
) -> None:
    path = resource.path(HOME, children[resource]["metadata"]["name"])
    for options in ({"propagationPolicy": "Orphan"}, {"orphanDependents": True}):
        denied = stolen_token.denial(lambda client, body=options: client.request("DELETE", path, body | DRY_RUN_BODY))
        assert "with its dependents" in denied
    for policy in ("Background", "Foreground"):
        body = {"propagationPolicy": policy, **DRY_RUN_BODY}
        assert not stolen_token.denial(lambda client, body=body: client.request("DELETE", path, body))


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_a_stripped_label_is_restored(
    plane: ControlPlane, stolen_token: Account, memcached: Object, resource: Resource
) -> None:
    key, reference = Key(resource, HOME, "stripped"), owner(uid=memcached["metadata"]["uid"])
    child = merged(LEAST[resource]("stripped", reference), {"metadata": {"labels": None}})
    plane.call(lambda client: client.create(key, child))
    try:
        live, path = at_rest(plane, key), resource.path(HOME, "stripped")
        patch = migration_patch(live)
        assert not stolen_token.denial(lambda client: client.request("PATCH", path, patch, JSON_PATCH, DRY_RUN))
        assert not stolen_token.denial(asked("PUT", resource, merged(live, {"metadata": {"labels": LABELS}})))
        assert MANAGED_BY in stolen_token.denial(asked("PUT", resource, merged(live, OTHER_SPEC[resource])))
        assert not stolen_token.denial(lambda client: client.request("DELETE", path, params=DRY_RUN))
    finally:
        plane.delete(key)


def test_owners_and_finalizers_that_others_put_into_a_child_stay(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    key, reference = Key(SERVICES, HOME, "shared"), owner(uid=memcached["metadata"]["uid"])
    boss = plane.create(CONFIG_MAPS, {"metadata": {"generateName": "boss-", "namespace": HOME}})["metadata"]
    theirs = {**CONFIG_MAP, "name": boss["name"], "uid": boss["uid"]}
    meta = {"ownerReferences": [reference, theirs], "finalizers": ["example.com/held"]}
    live = plane.create(SERVICES, merged(service("shared"), {"metadata": meta}))
    try:
        assert not stolen_token.denial(asked("PUT", SERVICES, merged(live, OTHER_SPEC[SERVICES])))
    finally:
        plane.change(key, {"metadata": {"finalizers": None}})
        plane.delete(key)


def test_other_accounts_are_not_affected(
    plane: ControlPlane, stolen_token: Account, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other_account = confined.account(plane, "other", tmp_path_factory.mktemp("other"))
    for resource, change, _ in ROWS.values():
        new = merged(LEAST[resource]("new"), change)
        assert stolen_token.denial(asked("POST", resource, new))
        assert not other_account.denial(asked("POST", resource, new))
    for work in confined.forbidden().values():
        assert not other_account.denial(work)


def foreign(plane: ControlPlane, resource: Resource, *owners: Object) -> Object:
    """An object in kube-system that has nothing to do with us, whatever its labels say, as it is stored."""
    obj = merged(LEAST[resource]("foreign", *owners), {"metadata": {"namespace": FOREIGN}})
    if not owners:
        obj = merged(obj, {"metadata": {"ownerReferences": None, "labels": None}})
    return plane.create(resource, obj)


def stolen(obj: Object) -> Object:
    """The object with a reference to a Memcached in place of its own."""
    return merged(obj, {"metadata": {"ownerReferences": [owner()], "labels": LABELS}})


def attempts(resource: Resource, live: Object) -> dict[str, Work]:
    """What an attacker might try with a foreign object."""
    meta = {name: live["metadata"][name] for name in ("name", "namespace")}
    labelled = {"metadata": {**meta, "labels": {**LABELS, "stolen": "yes"}}}
    scale = [{"op": "add", "path": "/metadata/labels", "value": LABELS}]
    path = resource.path(FOREIGN, "foreign")
    found: dict[str, Work] = {
        "label it": asked("PATCH", resource, labelled, MERGE_PATCH),
        "label it by JSON patch": lambda client: client.request("PATCH", path, scale, JSON_PATCH, DRY_RUN),
        "take it": asked("PUT", resource, stolen(live)),
        "apply over it": asked("PATCH", resource, stolen(LEAST[resource]("foreign")) | labelled, APPLY_PATCH),
        "change its status": asked("PATCH", resource, {"metadata": meta, "status": {}}, MERGE_PATCH, "status"),
        "delete it": lambda client: client.request("DELETE", path, params=DRY_RUN),
        "delete all": lambda client: client.request("DELETE", resource.path(FOREIGN), params=DRY_RUN),
    }
    if resource == DEPLOYMENTS:
        found["scale it"] = asked("PATCH", resource, {"metadata": meta, "spec": {"replicas": 9}}, MERGE_PATCH, "scale")
    return found


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
@pytest.mark.parametrize("controlled", [False, True], ids=["unowned", "with our labels"])
def test_a_foreign_object_cannot_be_changed(
    plane: ControlPlane, stolen_token: Account, resource: Resource, controlled: bool
) -> None:
    boss = plane.create(CONFIG_MAPS, {"metadata": {"generateName": "boss-", "namespace": FOREIGN}})["metadata"]
    owners = [{**owner("ConfigMap", "v1", boss["uid"]), "name": boss["name"]}] if controlled else []
    live = foreign(plane, resource, *owners)
    try:
        tried = attempts(resource, live)
        assert [way for way, work in tried.items() if not stolen_token.denial(work)] == []
    finally:
        plane.delete(Key(resource, FOREIGN, "foreign"))


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_a_child_stays_one(stolen_token: Account, children: dict[Resource, Object], resource: Resource) -> None:
    live = children[resource]
    assert not stolen_token.denial(asked("PUT", resource, live))
    assert "subresources" in stolen_token.denial(asked("PUT", resource, live, subresource="status"))
    for references in (None, [owner("ConfigMap", "v1")]):
        changed = merged(live, {"metadata": {"ownerReferences": references}})
        assert "controller reference" in stolen_token.denial(asked("PUT", resource, changed))


def test_a_child_is_scaled_but_not_by_its_subresource(stolen_token: Account, children: dict[Resource, Object]) -> None:
    scaled = merged(children[DEPLOYMENTS], {"spec": {"replicas": 3}})
    assert not stolen_token.denial(asked("PUT", DEPLOYMENTS, scaled))
    scale = {"metadata": {"name": "child", "namespace": HOME}, "spec": {"replicas": 3}}
    assert "subresources" in stolen_token.denial(asked("PATCH", DEPLOYMENTS, scale, MERGE_PATCH, "scale"))


OTHER_SPEC: dict[Resource, Object] = {
    DEPLOYMENTS: {"spec": {"replicas": 3}},
    SERVICES: {"spec": {"publishNotReadyAddresses": True}},
}
"""A harmless change of each kind."""


def at_rest(plane: ControlPlane, key: Key) -> Object:
    """An object that its own controller has seen, and writes no more."""
    if key.resource == DEPLOYMENTS:
        until(lambda: plane.must_get(key).get("status", {}).get("conditions"))
    return plane.must_get(key)


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_an_orphan_is_taken_back_or_deleted_and_not_changed_otherwise(
    plane: ControlPlane, stolen_token: Account, resource: Resource
) -> None:
    key = Key(resource, HOME, "orphan")
    orphaned = merged(LEAST[resource]("orphan"), {"metadata": {"ownerReferences": None}})
    plane.call(lambda client: client.create(key, orphaned))
    try:
        orphan = at_rest(plane, key)
        path, patch = resource.path(HOME, "orphan"), migration_patch(orphan)
        assert not stolen_token.denial(lambda client: client.request("PATCH", path, patch, JSON_PATCH, DRY_RUN))
        assert not stolen_token.denial(
            asked("PUT", resource, merged(orphan, {"metadata": {"ownerReferences": [owner()]}}))
        )
        changes = [{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/held"]}}]
        # Without this label the orphan would be unowned.
        changes += [{"metadata": {"labels": {"app.kubernetes.io/name": None}}}, OTHER_SPEC[resource]]
        changes += [{"metadata": {"annotations": {"a": "b"}}}]
        told = [stolen_token.denial(asked("PUT", resource, merged(orphan, change))) for change in changes]
        assert [said for said in told if "controller reference" not in said] == []
        assert not stolen_token.denial(lambda client: client.request("DELETE", path, params=DRY_RUN))
    finally:
        plane.delete(key)


def test_a_service_of_which_others_changed_the_type_can_be_given_its_own_again(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    ours = service("exposed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(SERVICES, merged(ours, {"spec": {"type": "LoadBalancer"}}))
    try:
        # First the ownership of its fields is transferred.
        assert not stolen_token.denial(asked("PUT", SERVICES, merged(live, {"metadata": {"annotations": {"a": "b"}}})))
        assert not stolen_token.denial(asked("PUT", SERVICES, merged(live, {"spec": {"type": "NodePort"}})))
    finally:
        plane.delete(Key(SERVICES, HOME, "exposed"))


def test_external_addresses_that_others_gave_a_service_stay(
    plane: ControlPlane, stolen_token: Account, memcached: Object
) -> None:
    ours = service("addressed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(SERVICES, merged(ours, {"spec": {"externalIPs": ["192.0.2.1"]}}))
    try:
        ports = {"spec": {"ports": [{"port": 81}]}}
        assert not stolen_token.denial(asked("PUT", SERVICES, merged(live, ports)))
        more = {"spec": {"externalIPs": ["192.0.2.1", "192.0.2.2"]}}
        assert "externalIPs" in stolen_token.denial(asked("PUT", SERVICES, merged(live, more)))
    finally:
        plane.delete(Key(SERVICES, HOME, "addressed"))


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
def test_of_a_webhook_configuration_only_the_bundle_can_be_changed(
    plane: ControlPlane, stolen_token: Account, resource: Resource
) -> None:
    made = configuration(Key(resource, "", "confined"))
    made["webhooks"][0] |= {"matchConditions": [{"name": "always", "expression": "true"}]}
    live = plane.create(resource, merged(made, {"metadata": {"labels": {"ours": "yes"}}}))
    first, second = live["webhooks"]
    changes = {name: {**live, "webhooks": [merged(first, change), second]} for name, change in WEBHOOK.items()}
    changes |= {name: merged(live, {"metadata": change}) for name, change in METADATA.items()}
    changes["one less"] = {**live, "webhooks": [first]}
    changes["none"] = {**live, "webhooks": None}
    changes["one more"] = {**live, "webhooks": [first, second, {**second, "name": "hook2.example.com"}]}
    if resource.kind == "MutatingWebhookConfiguration":
        changes["again"] = {**live, "webhooks": [merged(first, {"reinvocationPolicy": "IfNeeded"}), second]}
    try:
        tried = {name: stolen_token.denial(asked("PUT", resource, change)) for name, change in changes.items()}
        assert [name for name, said in tried.items() if "changes only" not in said] == []
        trusting = [merged(hook, {"clientConfig": {"caBundle": "YQ=="}}) for hook in live["webhooks"]]
        assert not stolen_token.denial(asked("PUT", resource, {**live, "webhooks": trusting}))
        live = plane.change(Key(resource, "", "confined"), {"metadata": {"managedFields": [{}]}})
        assert "managedFields" not in live["metadata"], "managedFields were cleared"
        assert not stolen_token.denial(asked("PUT", resource, {**live, "webhooks": trusting}))
        path = resource.path(None, "confined")
        assert "creates and deletes no" in stolen_token.denial(lambda client: client.request("DELETE", path))
    finally:
        plane.delete(Key(resource, "", "confined"))


SECRET = {"name": "memcached-operator-webhook-cert", "namespace": HOME}
ACCOUNT_TOKEN = {"annotations": {"kubernetes.io/service-account.name": confined.ACCOUNT}}
SECRETS_DENIED: dict[str, Object] = {
    "another name": {"metadata": {**SECRET, "name": "other"}, "type": "kubernetes.io/tls"},
    "a generated name": {"metadata": {"generateName": "other-", "namespace": HOME}, "type": "kubernetes.io/tls"},
    "a token": {"metadata": {**SECRET, **ACCOUNT_TOKEN}, "type": "kubernetes.io/service-account-token"},
    "no type": {"metadata": SECRET},
}


@pytest.mark.parametrize("secret", SECRETS_DENIED.values(), ids=SECRETS_DENIED.keys())
def test_no_other_secret_can_be_created(stolen_token: Account, secret: Object) -> None:
    data = {"data": {"tls.crt": "", "tls.key": ""}}
    assert "only the Secret memcached-operator-webhook-cert" in stolen_token.denial(
        asked("POST", SECRETS, data | secret)
    )


def test_the_controllers_own_work_passes(stolen_token: Account, namespace: str) -> None:
    meta = {"name": "cache", "namespace": namespace}
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    cr = stolen_token.create(
        MEMCACHEDS, {**kind, "metadata": meta, "spec": {"size": 1, "image": "example.com/memcached:1"}}
    )
    made = Owner(stolen_token, cr)
    assert made.apply() == CREATED
    made.spec(size=2, containerPort=11212)
    assert made.apply().keys() == {"patch deployments", "patch services"}
    assert made.live(SERVICES)["spec"]["ports"][0]["port"] == 11212
    assert made.apply([made.desired()[0]]) == {"delete services": 1}
    made.read_again()
    assert made.apply() == {"create services": 1}
    assert made.problems == []


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_an_orphan_is_taken_back(
    plane: ControlPlane, stolen_token: Account, namespace: str, resource: Resource
) -> None:
    meta = {"name": "cache", "namespace": namespace}
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    cr = stolen_token.create(
        MEMCACHEDS, {**kind, "metadata": meta, "spec": {"size": 1, "image": "example.com/memcached:1"}}
    )
    made = Owner(stolen_token, cr)
    made.apply()
    plane.change(made.key(resource), {"metadata": {"ownerReferences": None}})
    made.read_again()
    assert made.apply().keys() == {f"patch {resource.plural}"}
    assert made.problems == []
    assert made.live(resource)["metadata"]["ownerReferences"][0]["uid"] == cr["metadata"]["uid"]


def test_the_controllers_certificates_are_made_and_renewed(
    plane: ControlPlane, stolen_token: Account, namespace: str
) -> None:
    names = WebhookNames(namespace, SECRET["name"], "webhook", f"{namespace}-mutating", f"{namespace}-validating")
    made = Installation(stolen_token, names)
    for key in made.configurations:
        plane.create(key.resource, configuration(key))
    try:
        made.check()
        old = made.pair()
        made.check(after=LIFETIME * 0.7)
        assert made.bundles() == [made.pair().ca + old.ca] * 4
    finally:
        for key in made.configurations:
            plane.delete(key)


def test_no_expression_is_doubtful_to_the_api_server(plane: ControlPlane, stolen_token: Account) -> None:
    del stolen_token

    def checked() -> bool:
        found = plane.call(lambda client: client.request("GET", policies.POLICIES))["items"]
        statuses = [each.get("status", {}) for each in found]
        assert [status.get("typeChecking", {}) for status in statuses] == [{}] * len(policies.policies())
        return all("observedGeneration" in status for status in statuses)

    until(checked)
