"""The admission policies: what a stolen token of the controller's account cannot do, and what the controller can."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

import goldens
from integration import confined
from integration.confined import HOME, LABELS, Account, Work, asked, deployment, owner, service
from integration.control_plane import ControlPlane, until
from integration.issuing import CONFIGURATIONS, Installation, configuration
from integration.test_apply import CREATED, Owner
from memcached_operator.certificates.issuer import Names
from memcached_operator.certificates.pki import LIFETIME
from memcached_operator.engine.apply import complete
from memcached_operator.engine.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH
from memcached_operator.engine.ownership import handover
from memcached_operator.engine.resource import DEPLOYMENTS, SECRETS, SERVICES, Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from support import policies

FOREIGN = "kube-system"
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
LEAST = {DEPLOYMENTS: deployment, SERVICES: service}
"""The least child of each kind."""


@pytest.fixture(scope="module")
def thief(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """Whoever has the token of the controller's account."""
    with confined.home(plane):
        found = confined.account(plane, confined.ACCOUNT, tmp_path_factory.mktemp("thief"))
        confined.in_effect(found)
        yield found


@pytest.fixture(scope="module")
def memcached(plane: ControlPlane, thief: Account) -> Object:
    """The owner of the children."""
    del thief
    meta, spec = {"name": "child", "namespace": HOME}, {"image": "example.com/memcached:1"}
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    return plane.create(MEMCACHEDS, {**kind, "metadata": meta, "spec": spec})


@pytest.fixture(scope="module")
def children(plane: ControlPlane, memcached: Object) -> dict[Resource, Object]:
    """A Deployment and a Service that a Memcached owns, as they are stored."""
    reference = owner(uid=memcached["metadata"]["uid"])
    return {resource: plane.create(resource, make("child", reference)) for resource, make in LEAST.items()}


def nested(path: str, value: Any) -> Object:
    """A value at a path: `nested("a.b", 1)` is `{"a": {"b": 1}}`."""
    name, _, rest = path.partition(".")
    return {name: nested(rest, value) if rest else value}


def merged(obj: Any, patch: Mapping[str, Any]) -> Any:
    """The object with a merge patch in it; the only container is merged too."""
    found = copy.deepcopy(obj)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif name == "containers":
            found[name] = [merged(found[name][0], value[0])]
        else:
            found[name] = merged(found.get(name, {}), cast("Object", value)) if isinstance(value, dict) else value
    return found


def pod(path: str, value: Any) -> Object:
    """A change of the pod template's spec."""
    return nested(f"spec.template.spec.{path}", value)


def container(path: str, value: Any) -> Object:
    """A change of its container."""
    return pod("containers", [nested(path, value)])


TOKEN = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
FIRST = {"name": "first", "image": "example.com/app:1"}
OWN = "securityContext"
SYSCTL = {"name": "kernel.shm_rmid_forced", "value": "0"}
TEMPLATES: dict[str, tuple[Object, str]] = {
    "host network": (pod("hostNetwork", True), "hostNetwork"),
    "host PIDs": (pod("hostPID", True), "hostPID"),
    "host IPC": (pod("hostIPC", True), "hostIPC"),
    "host port": (container("ports", [{"containerPort": 80, "hostPort": 80}]), "hostPort"),
    "host path": (pod("volumes", [{"name": "all", "hostPath": {"path": "/"}}]), "volumes"),
    "Secret as a volume": (pod("volumes", [{"name": "all", "secret": {"secretName": "any"}}]), "volumes"),
    "claim": (pod("volumes", [{"name": "all", "persistentVolumeClaim": {"claimName": "any"}}]), "volumes"),
    "projected token": (pod("volumes", [{"name": "all", **TOKEN}]), "volumes"),
    "empty volume": (pod("volumes", [{"name": "all", "emptyDir": {}}]), "volumes"),
    "init container": (pod("initContainers", [FIRST]), "init containers"),
    "token": (pod("automountServiceAccountToken", True), "automountServiceAccountToken"),
    "token by default": (pod("automountServiceAccountToken", None), "automountServiceAccountToken"),
    "account": (pod("serviceAccountName", "admin"), "names no ServiceAccount"),
    "account by its old field": (pod("serviceAccount", "admin"), "names no ServiceAccount"),
    "privileged": (container(OWN, {"privileged": True}), "privileged"),
    "capabilities": (container(OWN, {"capabilities": {"add": ["SYS_ADMIN"]}}), "capabilities"),
    "no profile": (pod(OWN, None), "seccompProfile"),
    "pod: no seccomp": (pod(f"{OWN}.seccompProfile.type", "Unconfined"), "seccompProfile"),
    "pod: no AppArmor": (pod(f"{OWN}.appArmorProfile", {"type": "Unconfined"}), "appArmorProfile"),
    "pod: SELinux": (pod(f"{OWN}.seLinuxOptions", {"type": "spc_t"}), "seLinuxOptions"),
    "pod: sysctls": (pod(f"{OWN}.sysctls", [SYSCTL]), "sysctls"),
    "pod: Windows": (pod(f"{OWN}.windowsOptions", {"runAsUserName": "SYSTEM"}), "windowsOptions"),
    "container: no seccomp": (container(OWN, {"seccompProfile": {"type": "Unconfined"}}), "seccompProfile"),
    "container: no AppArmor": (container(OWN, {"appArmorProfile": {"type": "Unconfined"}}), "appArmorProfile"),
    "container: SELinux": (container(OWN, {"seLinuxOptions": {"type": "spc_t"}}), "seLinuxOptions"),
    "container: Windows": (container(OWN, {"windowsOptions": {"runAsUserName": "SYSTEM"}}), "windowsOptions"),
}
"""Changes of a Deployment, and what is said against each."""
ADDRESSES: dict[str, tuple[Object, str]] = {
    "another name": ({"spec": {"type": "ExternalName", "externalName": "evil.example.com"}}, "spec.type"),
    "load balancer": ({"spec": {"type": "LoadBalancer"}}, "spec.type"),
    "external addresses": ({"spec": {"externalIPs": ["192.0.2.1"]}}, "spec.externalIPs"),
    "other pods": ({"spec": {"selector": {"app.kubernetes.io/managed-by": "Helm"}}}, "spec.selector"),
    "all pods of a name": ({"spec": {"selector": {"app.kubernetes.io/managed-by": None}}}, "spec.selector"),
    "no pods": ({"spec": {"selector": None}}, "spec.selector"),
}
"""The same for a Service."""
REFERENCES: dict[str, tuple[Object, str]] = {
    name: ({"metadata": {"ownerReferences": references}}, "controller reference")
    for name, references in {
        "no reference": None,
        "no controller": [{**owner(), "controller": False}],
        "another kind": [owner("ConfigMap", "v1")],
        "a group with a similar name": [owner(api_version="cache.example.com.evil.example.com/v1")],
        "our kind in our other group": [owner("AppService", "cache.example.com/v1")],
    }.items()
}
"""The same for both."""
ROWS = {
    f"{resource.kind}: {name}": (resource, *row)
    for resource, rows in ((DEPLOYMENTS, TEMPLATES | REFERENCES), (SERVICES, ADDRESSES | REFERENCES))
    for name, row in rows.items()
}


@pytest.mark.parametrize(("resource", "change", "said"), ROWS.values(), ids=ROWS.keys())
def test_what_is_never_built_is_neither_created_nor_put_into_a_child(
    thief: Account, children: dict[Resource, Object], resource: Resource, change: Object, said: str
) -> None:
    new = merged(LEAST[resource]("new"), change)
    ways = {
        "create": asked("POST", resource, new),
        "apply": asked("PATCH", resource, new, APPLY_PATCH),
        "update": asked("PUT", resource, merged(children[resource], change)),
    }
    told = {way: thief.denial(work) for way, work in ways.items()}
    assert [way for way in ways if said not in told[way]] == [], told


def test_nobody_else_is_affected(plane: ControlPlane, thief: Account, tmp_path_factory: pytest.TempPathFactory) -> None:
    passer_by = confined.account(plane, "passer-by", tmp_path_factory.mktemp("passer-by"))
    for resource, change, _ in ROWS.values():
        new = merged(LEAST[resource]("new"), change)
        assert thief.denial(asked("POST", resource, new))
        assert not passer_by.denial(asked("POST", resource, new))
    for work in confined.forbidden().values():
        assert not passer_by.denial(work)


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
    """What a thief might try with an object of somebody else's."""
    meta = {name: live["metadata"][name] for name in ("name", "namespace")}
    labelled = {"metadata": {**meta, "labels": {**LABELS, "stolen": "yes"}}}
    scale = [{"op": "add", "path": "/metadata/labels", "value": LABELS}]
    path = resource.path(FOREIGN, "foreign")
    found: dict[str, Work] = {
        "label it": asked("PATCH", resource, labelled, MERGE_PATCH),
        "label it by JSON patch": lambda client: client.request("PATCH", path, scale, JSON_PATCH, confined.DRY_RUN),
        "take it": asked("PUT", resource, stolen(live)),
        "apply over it": asked("PATCH", resource, stolen(LEAST[resource]("foreign")) | labelled, APPLY_PATCH),
        "change its status": asked("PATCH", resource, {"metadata": meta, "status": {}}, MERGE_PATCH, "status"),
        "delete it": lambda client: client.request("DELETE", path, params=confined.DRY_RUN),
        "delete all": lambda client: client.request("DELETE", resource.path(FOREIGN), params=confined.DRY_RUN),
    }
    if resource == DEPLOYMENTS:
        found["scale it"] = asked("PATCH", resource, {"metadata": meta, "spec": {"replicas": 9}}, MERGE_PATCH, "scale")
    return found


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
@pytest.mark.parametrize("controlled", [False, True], ids=["of nobody", "with our labels"])
def test_what_belongs_to_others_cannot_be_touched(
    plane: ControlPlane, thief: Account, resource: Resource, controlled: bool
) -> None:
    boss = plane.create(CONFIG_MAPS, {"metadata": {"generateName": "boss-", "namespace": FOREIGN}})["metadata"]
    owners = [{**owner("ConfigMap", "v1", boss["uid"]), "name": boss["name"]}] if controlled else []
    live = foreign(plane, resource, *owners)
    try:
        tried = attempts(resource, live)
        assert [way for way, work in tried.items() if not thief.denial(work)] == []
    finally:
        plane.delete(Key(resource, FOREIGN, "foreign"))


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_a_child_stays_one(thief: Account, children: dict[Resource, Object], resource: Resource) -> None:
    live = children[resource]
    assert not thief.denial(asked("PUT", resource, live))
    assert "subresources" in thief.denial(asked("PUT", resource, live, subresource="status"))
    for references in (None, [owner("ConfigMap", "v1")]):
        changed = merged(live, {"metadata": {"ownerReferences": references}})
        assert "controller reference" in thief.denial(asked("PUT", resource, changed))


def test_a_child_is_scaled_but_not_by_its_subresource(thief: Account, children: dict[Resource, Object]) -> None:
    scaled = merged(children[DEPLOYMENTS], {"spec": {"replicas": 3}})
    assert not thief.denial(asked("PUT", DEPLOYMENTS, scaled))
    scale = {"metadata": {"name": "child", "namespace": HOME}, "spec": {"replicas": 3}}
    assert "subresources" in thief.denial(asked("PATCH", DEPLOYMENTS, scale, MERGE_PATCH, "scale"))


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
    plane: ControlPlane, thief: Account, resource: Resource
) -> None:
    key = Key(resource, HOME, "orphan")
    orphaned = merged(LEAST[resource]("orphan"), {"metadata": {"ownerReferences": None}})
    plane.call(lambda client: client.create(key, orphaned))
    try:
        orphan = at_rest(plane, key)
        path, patch = resource.path(HOME, "orphan"), handover(orphan)
        assert not thief.denial(lambda client: client.request("PATCH", path, patch, JSON_PATCH, confined.DRY_RUN))
        assert not thief.denial(asked("PUT", resource, merged(orphan, {"metadata": {"ownerReferences": [owner()]}})))
        changes = [{"metadata": {"labels": {"a": "b"}}}, {"metadata": {"finalizers": ["example.com/held"]}}]
        # Without this label the orphan would be nobody's.
        changes += [{"metadata": {"labels": {"app.kubernetes.io/name": None}}}, OTHER_SPEC[resource]]
        changes += [{"metadata": {"annotations": {"a": "b"}}}]
        told = [thief.denial(asked("PUT", resource, merged(orphan, change))) for change in changes]
        assert [said for said in told if "controller reference" not in said] == []
        assert not thief.denial(lambda client: client.request("DELETE", path, params=confined.DRY_RUN))
    finally:
        plane.delete(key)


def test_what_others_put_into_a_child_does_not_stop_the_controller(
    plane: ControlPlane, thief: Account, memcached: Object
) -> None:
    key = Key(DEPLOYMENTS, HOME, "changed")
    ours = deployment("changed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(DEPLOYMENTS, merged(ours, pod("hostNetwork", True)))
    try:
        assert not thief.denial(asked("PUT", DEPLOYMENTS, merged(live, {"spec": {"replicas": 3}})))
        assert "hostNetwork" in thief.denial(asked("PUT", DEPLOYMENTS, merged(live, container("image", "other:1"))))
    finally:
        plane.delete(key)


def test_a_service_of_which_others_changed_the_type_can_be_given_its_own_again(
    plane: ControlPlane, thief: Account, memcached: Object
) -> None:
    ours = service("exposed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(SERVICES, merged(ours, {"spec": {"type": "LoadBalancer"}}))
    try:
        # First the ownership of its fields is transferred.
        assert not thief.denial(asked("PUT", SERVICES, merged(live, {"metadata": {"annotations": {"a": "b"}}})))
        assert not thief.denial(asked("PUT", SERVICES, merged(live, {"spec": {"type": "NodePort"}})))
    finally:
        plane.delete(Key(SERVICES, HOME, "exposed"))


def test_external_addresses_that_others_gave_a_service_stay(
    plane: ControlPlane, thief: Account, memcached: Object
) -> None:
    ours = service("addressed", owner(uid=memcached["metadata"]["uid"]))
    live = plane.create(SERVICES, merged(ours, {"spec": {"externalIPs": ["192.0.2.1"]}}))
    try:
        ports = {"spec": {"ports": [{"port": 81}]}}
        assert not thief.denial(asked("PUT", SERVICES, merged(live, ports)))
        more = {"spec": {"externalIPs": ["192.0.2.1", "192.0.2.2"]}}
        assert "externalIPs" in thief.denial(asked("PUT", SERVICES, merged(live, more)))
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
    plane: ControlPlane, thief: Account, resource: Resource
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
        tried = {name: thief.denial(asked("PUT", resource, change)) for name, change in changes.items()}
        assert [name for name, said in tried.items() if "changes only" not in said] == []
        trusting = [merged(hook, {"clientConfig": {"caBundle": "YQ=="}}) for hook in live["webhooks"]]
        assert not thief.denial(asked("PUT", resource, {**live, "webhooks": trusting}))
        live = plane.change(Key(resource, "", "confined"), {"metadata": {"managedFields": [{}]}})
        assert "managedFields" not in live["metadata"], "somebody had the fields' owners forgotten"
        assert not thief.denial(asked("PUT", resource, {**live, "webhooks": trusting}))
        path = resource.path(None, "confined")
        assert "creates and deletes no" in thief.denial(lambda client: client.request("DELETE", path))
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
def test_no_other_secret_can_be_created(thief: Account, secret: Object) -> None:
    data = {"data": {"tls.crt": "", "tls.key": ""}}
    assert "only the Secret memcached-operator-webhook-cert" in thief.denial(asked("POST", SECRETS, data | secret))


SHAPES = {f"{kind}/{shape}": path for kind in goldens.KINDS for shape, path in goldens.paths(kind).items()}


@pytest.mark.parametrize("path", SHAPES.values(), ids=SHAPES.keys())
def test_whatever_is_built_can_be_created(thief: Account, path: Any) -> None:
    cr, *built = goldens.objects(path)
    cr["metadata"] |= {"namespace": HOME, "uid": "of-no-object"}
    resources = {resource.kind: resource for resource in LEAST}
    for child in built:
        made = complete(cr, child)
        # A node port may be another's.
        for port in made["spec"].get("ports", ()):
            port.pop("nodePort", None)
        assert not thief.denial(asked("POST", resources[child["kind"]], made))


def test_the_controllers_own_work_passes(thief: Account, namespace: str) -> None:
    meta = {"name": "cache", "namespace": namespace}
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    cr = thief.create(MEMCACHEDS, {**kind, "metadata": meta, "spec": {"size": 1, "image": "example.com/memcached:1"}})
    made = Owner(thief, cr)
    assert made.apply() == CREATED
    made.spec(size=2, containerPort=11212)
    assert made.apply().keys() == {"patch deployments", "patch services"}
    assert made.live(SERVICES)["spec"]["ports"][0]["port"] == 11212
    assert made.apply([made.desired()[0]]) == {"delete services": 1}
    made.read_again()
    assert made.apply() == {"create services": 1}
    assert made.troubles == []


@pytest.mark.parametrize("resource", LEAST, ids=lambda resource: resource.kind)
def test_an_orphan_is_taken_back(plane: ControlPlane, thief: Account, namespace: str, resource: Resource) -> None:
    meta = {"name": "cache", "namespace": namespace}
    kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind}
    cr = thief.create(MEMCACHEDS, {**kind, "metadata": meta, "spec": {"size": 1, "image": "example.com/memcached:1"}})
    made = Owner(thief, cr)
    made.apply()
    plane.change(made.key(resource), {"metadata": {"ownerReferences": None}})
    made.read_again()
    assert made.apply().keys() == {f"patch {resource.plural}"}
    assert made.troubles == []
    assert made.live(resource)["metadata"]["ownerReferences"][0]["uid"] == cr["metadata"]["uid"]


def test_the_controllers_certificates_are_made_and_renewed(plane: ControlPlane, thief: Account, namespace: str) -> None:
    names = Names(namespace, SECRET["name"], "webhook", f"{namespace}-mutating", f"{namespace}-validating")
    made = Installation(thief, names)
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


def test_no_expression_is_doubtful_to_the_api_server(plane: ControlPlane, thief: Account) -> None:
    del thief

    def checked() -> bool:
        found = plane.call(lambda client: client.request("GET", policies.POLICIES))["items"]
        statuses = [each.get("status", {}) for each in found]
        assert [status.get("typeChecking", {}) for status in statuses] == [{}] * len(policies.policies())
        return all("observedGeneration" in status for status in statuses)

    until(checked)
