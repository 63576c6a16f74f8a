"""The admission policies: what a stolen token of the controller's account cannot do, and what the controller can do."""

import ast
from collections.abc import Iterable

import pytest

from integration import confined, pods
from integration.confined import (
    ACCOUNT_NAMESPACE,
    CHILDREN,
    DRY_RUN,
    Account,
    child,
    dry_run,
    merged,
    owner,
    pod,
    prepare,
)
from integration.control_plane import ControlPlane, until
from integration.policy_rows import OTHER_OWNER, REQUIRED, ROWS, SPREAD, Row, spec, template, valid
from integration.policy_stored import STORED, Stored
from memcached_operator.kube import resource as kinds
from memcached_operator.kube.client import MERGE_PATCH
from memcached_operator.kube.resource import Key, Object, Resource, key_of
from support import policies
from support.policies import message

pytestmark = pytest.mark.server

WITH_STATUS = (kinds.DEPLOYMENTS, kinds.STATEFULSETS, kinds.SERVICES, kinds.POD_DISRUPTION_BUDGETS)
SUBRESOURCES = message("writes no subresources")
DEPENDENTS = message("an object only with its dependents")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_changes_of_a_valid_object(
    version: str, stolen_token: Account, children: dict[Resource, Object], row: Row
) -> None:
    if row.since and not row.since.applies(version):
        pytest.skip("this version does not have the field")
    works = {"create": dry_run("POST", row.resource, merged(valid(row.resource), row.change))}
    if not row.only_new:
        works["update"] = dry_run("PUT", row.resource, merged(children[row.resource], row.change))
    denials = {operation: stolen_token.denial(work) for operation, work in works.items()}
    assert denials == dict.fromkeys(works, row.message)


def with_existing_owners(plane: ControlPlane, memcached: Object, obj: Object) -> Object:
    """The object with the UIDs of its owners. In other namespaces than that of the Memcached, this one does not exist.

    The garbage collector deletes an object whose owners do not exist, and removes one of several such owners.
    """
    namespace = obj["metadata"].get("namespace")
    found = {"Memcached": memcached} if namespace == ACCOUNT_NAMESPACE else {}
    references = obj["metadata"].get("ownerReferences", ())
    if any(each["name"] == OTHER_OWNER["name"] for each in references):
        found["ConfigMap"] = plane.must_get(Key(kinds.CONFIG_MAPS, namespace, OTHER_OWNER["name"]))
    references = [
        {**each, "uid": found[each["kind"]]["metadata"]["uid"]} if each["kind"] in found else each
        for each in references
    ]
    return merged(obj, {"metadata": {"ownerReferences": references or None}})


@pytest.mark.parametrize("row", STORED, ids=lambda row: row.name)
def test_writes_of_an_object_that_another_client_stored(
    plane: ControlPlane, stolen_token: Account, memcached: Object, row: Stored
) -> None:
    obj = with_existing_owners(plane, memcached, row.obj)
    live = plane.call(lambda client: client.create(row.key, obj))
    try:
        path = row.resource.path(row.key.namespace, row.key.name)
        if row.resource in CHILDREN:
            assert stolen_token.denial(prepare(row.key)) == row.deletion
        works = [dry_run("PUT", row.resource, merged(live, change)) for _, change in row.changes]
        assert [stolen_token.denial(work) for work in works] == [denial for denial, _ in row.changes]
        assert stolen_token.denial(lambda client: client.request("DELETE", path, params=DRY_RUN)) == row.deletion
    finally:
        plane.change(row.key, {"metadata": {"finalizers": None}})
        plane.delete(row.key)


def test_every_rule_denies_a_row() -> None:
    expected = {row.message for row in ROWS} | {each for row in STORED for each in (*row.denied, row.deletion)}
    expected |= {denial for _, denial in (*pods.REQUESTS.values(), *pods.RESIZES.values())}
    assert policies.messages() - expected == {SUBRESOURCES, DEPENDENTS}


@pytest.mark.parametrize("api_version", ["cache.example.com/v1", "cache.example.com/v1alpha1"])
def test_deployment_with_a_forged_owner_is_garbage_collected(
    plane: ControlPlane, stolen_token: Account, api_version: str
) -> None:
    key = Key(kinds.DEPLOYMENTS, ACCOUNT_NAMESPACE, "forged")
    stolen_token.create(kinds.DEPLOYMENTS, child(kinds.DEPLOYMENTS, "forged", owner(api_version=api_version)))
    until(lambda: plane.get(key) is None)


@pytest.mark.parametrize("resource", CHILDREN, ids=lambda resource: resource.kind)
def test_deletion_that_orphans_dependents_is_denied(
    stolen_token: Account, children: dict[Resource, Object], resource: Resource
) -> None:
    path = resource.path(ACCOUNT_NAMESPACE, children[resource]["metadata"]["name"])

    def denial(**options: object) -> str:
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"], **options}
        return stolen_token.denial(lambda client: client.request("DELETE", path, body))

    assert denial(propagationPolicy="Orphan") == denial(orphanDependents=True) == DEPENDENTS
    assert denial(propagationPolicy="Background") == denial(propagationPolicy="Foreground") == ""


def test_other_accounts_are_not_affected(
    plane: ControlPlane, stolen_token: Account, tmp_path_factory: pytest.TempPathFactory
) -> None:
    del stolen_token  # binds the policies
    other_account = confined.create_account(plane, "other", tmp_path_factory.mktemp("other"))
    assert [policy for policy, work in confined.forbidden().items() if other_account.denial(work)] == []


@pytest.mark.parametrize("resource", WITH_STATUS, ids=lambda resource: resource.kind)
def test_subresources_are_denied(stolen_token: Account, children: dict[Resource, Object], resource: Resource) -> None:
    current = stolen_token.must_get(key_of(resource, children[resource]))  # a count of the status cannot be lowered
    works = [dry_run("PUT", resource, current, subresource="status")]
    if resource in (kinds.DEPLOYMENTS, kinds.STATEFULSETS):
        scale = {"metadata": {"name": "child", "namespace": ACCOUNT_NAMESPACE}, **spec(replicas=3)}
        works.append(dry_run("PATCH", resource, scale, MERGE_PATCH, "scale"))
    assert {stolen_token.denial(work) for work in works} == {SUBRESOURCES}


def entries(prefix: str, length: int, count: int = 64) -> list[str]:
    """Different texts of this length."""
    return [f"{prefix}{number:02}".ljust(length, "x") for number in range(count)]


def keys(count: int = 64) -> Iterable[str]:
    """The longest keys of labels and annotations."""
    return (f"{domain}/{'n' * 63}" for domain in entries("a", 50, count))


def test_largest_template_is_within_the_cost_limit_of_policies(stolen_token: Account) -> None:
    long = dict.fromkeys(keys(), "v" * 63)
    selector = {"matchLabels": long, "matchExpressions": [{"key": key, "operator": "Exists"} for key in keys()]}
    term = {"topologyKey": "zone", "labelSelector": selector, "namespaces": entries("n", 63)}
    largest: Object = {
        "nodeSelector": long,
        "tolerations": [{"key": key, "value": "v" * 63, "effect": "NoExecute"} for key in keys()],
        "affinity": {"podAffinity": {REQUIRED: [term] * 8}},
        "topologySpreadConstraints": [{**SPREAD, "topologyKey": key, "labelSelector": selector} for key in keys(16)],
        "containers": [{"env": [{"name": f"E{number}", "value": "v" * 100} for number in range(1000)]}],
    }
    obj = child(kinds.DEPLOYMENTS, "new")
    annotations = dict.fromkeys(keys(), "v" * 3000)
    for change in (pod("", largest), template("labels", **long), template("annotations", **annotations)):
        obj = merged(obj, change)
    assert not stolen_token.denial(dry_run("POST", kinds.DEPLOYMENTS, obj))


LEAVES = {
    *(f"spec.template.spec.affinity.{each}" for each in ("nodeAffinity", "podAffinity", "podAntiAffinity")),
    "spec.template.spec.containers.env.valueFrom.configMapKeyRef",
    "spec.template.spec.containers.env.valueFrom.fieldRef",
    "spec.template.spec.containers.env.valueFrom.resourceFieldRef",
    "spec.template.spec.containers.env.valueFrom.secretKeyRef",
    *(f"spec.template.spec.initContainers.{each}" for each in ("resources", "securityContext")),
    "spec.template.spec.topologySpreadConstraints.labelSelector",
    "spec.template.spec.volumes.ephemeral.volumeClaimTemplate.spec.resources",
    "spec.template.spec.volumes.projected.sources.secret.items",
}
"""Objects of the user's spec that are allowed with any fields: references, and terms that select nodes and pods. A
further rule limits the items of projected Secrets. The parts of an init container are limited as those of containers.
"""


def properties(schemas: Object, schema: Object) -> Object:
    """The fields of an object or of a list's objects; empty for other types."""
    inner = schema.get("items", schema)
    for part in (inner, *inner.get("allOf", ())):
        if "$ref" in part:
            return schemas[part["$ref"].rpartition("/")[2]].get("properties", {})
    return {}


def test_allowed_fields_of_every_object_in_a_template_are_listed(plane: ControlPlane) -> None:
    schemas = plane.call(lambda client: client.request("GET", "/openapi/v3/apis/apps/v1"))["components"]["schemas"]
    (children,) = [each for each in policies.policies() if each["metadata"]["name"] == "children"]
    variables = {each["name"]: each["expression"] for each in children["spec"]["variables"]}
    levels: dict[str, dict[str, list[str]]] = ast.literal_eval(variables["allowed"])
    reached = set[str]()

    def walk(path: str, fields: Object) -> None:
        reached.add(path)
        assert levels[path].keys() <= fields.keys(), path
        for name in levels[path]:
            inner = properties(schemas, fields[name])
            if inner and f"{path}.{name}" not in LEAVES:
                walk(f"{path}.{name}", inner)

    walk("spec.template", schemas["io.k8s.api.core.v1.PodTemplateSpec"]["properties"])
    assert reached == levels.keys()


def test_type_checking_has_no_warnings(plane: ControlPlane, stolen_token: Account) -> None:
    del stolen_token  # waits until the controller manager has checked all policies
    found = plane.call(lambda client: client.request("GET", policies.POLICIES))["items"]
    warnings = {each["metadata"]["name"]: each["status"].get("typeChecking", {}) for each in found}
    assert {each["metadata"]["name"]: {} for each in policies.policies()}.items() <= warnings.items()
