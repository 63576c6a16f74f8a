"""The admission policies are bound to the controller's service account and cover every object that it may write."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bundle.installer import INSTALLER
from bundle.objects import documents
from memcached_api.registry import KINDS
from unit.config.rendered import ROOT, Object, Rendered, render_directory

PREFIX = "memcached-operator"
NAMESPACE = f"{PREFIX}-system"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
CONTROLLER = f"{PREFIX}-controller-manager"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
POD_WRITES = {"pods", "pods/resize"}
NOT_CHILDREN = (
    {f"{kind.plural}/{part}" for kind in KINDS for part in ("status", "finalizers")} | {"events"} | POD_WRITES
)
"""Resources that the controller writes and that are not children."""
OUTER = """
resources: [{base}]
namespace: caches
namePrefix: our-
"""
KUBECTL = ("config/default", "config/overlays/certmanager", "config/overlays/namespaced")


@pytest.fixture(params=KUBECTL)
def installed(request: pytest.FixtureRequest) -> Rendered:
    """Each variant for kubectl."""
    return render_directory(request.param)


def bound(rendered: Rendered) -> set[tuple[str, str]]:
    """Namespace and name of each service account that a policy is bound to; fails if a policy is not bound."""
    bindings = rendered.of(BINDING)
    assert {binding["spec"]["policyName"] for binding in bindings} == rendered.names(POLICY)
    assert rendered.of(POLICY)
    references = [binding["spec"]["paramRef"] for binding in bindings]
    return {(reference["namespace"], reference["name"]) for reference in references}


def test_policies_are_bound_to_the_controllers_service_account(installed: Rendered) -> None:
    assert bound(installed) == {(NAMESPACE, CONTROLLER)}
    account = installed.one("ServiceAccount", CONTROLLER)
    pod = installed.one("Deployment", CONTROLLER)["spec"]["template"]["spec"]
    assert account["metadata"]["namespace"] == NAMESPACE
    assert pod["serviceAccountName"] == CONTROLLER


@pytest.mark.parametrize("base", ["config/default", "config/overlays/certmanager"])
def test_bindings_follow_the_namespace_and_prefix_of_an_overlay(tmp_path: Path, base: str) -> None:
    directory = os.path.relpath(ROOT / base, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(OUTER.format(base=directory))
    rendered = render_directory(str(tmp_path))
    assert rendered.one("ServiceAccount", f"our-{CONTROLLER}")["metadata"]["namespace"] == "caches"
    assert bound(rendered) == {("caches", f"our-{CONTROLLER}")}


def test_olm_policies_are_a_separate_overlay(default: Rendered, render: Callable[[str], Rendered]) -> None:
    rendered, olm = render("config/overlays/olm-policies"), render("config/manifests")
    assert bound(rendered) == {(NAMESPACE, CONTROLLER)}
    assert rendered.names(POLICY) == default.names(POLICY)
    assert not olm.of(POLICY, BINDING)
    assert CONTROLLER in olm.names("ServiceAccount")


def test_policies_fail_closed_and_match_only_the_bound_account(default: Rendered) -> None:
    for policy in default.of(POLICY):
        spec = policy["spec"]
        assert (spec["failurePolicy"], spec["paramKind"]) == ("Fail", {"apiVersion": "v1", "kind": "ServiceAccount"})
        first = spec["matchConditions"][0]["expression"]
        account = "'system:serviceaccount:' + params.metadata.namespace + ':' + params.metadata.name"
        assert " ".join(first.split()) == f"request.userInfo.username == {account}"
    for binding in default.of(BINDING):
        assert binding["spec"]["validationActions"] == ["Deny"]
        # If the service account does not exist, the policy must not apply: with Deny, all requests would be denied.
        assert binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Allow"


def test_every_denial_has_reason_forbidden_and_a_message(default: Rendered) -> None:
    for policy in default.of(POLICY):
        for validation in policy["spec"]["validations"]:
            assert validation["reason"] == "Forbidden"
            assert "memcached-operator" in validation["message"]


def written(rules: list[Object]) -> Iterator[str]:
    """The resources that RBAC rules allow to be written."""
    for rule in rules:
        if WRITES & set(rule["verbs"]):
            yield from rule["resources"]


def covered(policy: Object) -> set[str]:
    """The resources that a policy matches."""
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    return {resource for rule in rules for resource in rule["resources"]}


def test_policies_cover_every_child_that_the_controller_may_write(default: Rendered) -> None:
    children = set(written(default.one("ClusterRole", f"{PREFIX}-manager-role")["rules"])) - NOT_CHILDREN
    wanted = children | {f"{resource}/*" for resource in children}
    assert covered(default.one(POLICY, f"{PREFIX}-children")) == wanted


def test_policies_cover_the_writes_of_pods(default: Rendered) -> None:
    assert set(written(default.one("ClusterRole", f"{PREFIX}-manager-role")["rules"])) >= POD_WRITES
    assert covered(default.one(POLICY, f"{PREFIX}-pods")) == {"pods", "pods/*"}


def test_policies_cover_the_writes_of_certificate_management(default: Rendered) -> None:
    roles = [default.one(kind, f"{PREFIX}-certificates-role") for kind in ("Role", "ClusterRole")]
    wanted = {resource for role in roles for resource in written(role["rules"])}
    names = ("secrets", "webhook-configurations")
    assert set().union(*(covered(default.one(POLICY, f"{PREFIX}-{name}")) for name in names)) == wanted


def test_owners_are_all_kinds_in_every_version(default: Rendered) -> None:
    served = [
        [f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]]
        for crd in default.of("CustomResourceDefinition")
        for version in crd["spec"]["versions"]
    ]
    policy = default.one(POLICY, f"{PREFIX}-children")
    (owners,) = [each["expression"] for each in policy["spec"]["variables"] if each["name"] == "owners"]
    assert sorted(ast.literal_eval(owners)) == sorted(served)


def test_operator_has_no_permissions_on_policies(installed: Rendered) -> None:
    for role in installed.of("Role", "ClusterRole"):
        assert not [rule for rule in role["rules"] if any("admissionpolic" in each for each in rule["resources"])]


def test_installer_contains_the_policies_without_a_namespace() -> None:
    objects = documents((ROOT / INSTALLER).read_text(), INSTALLER)
    found = [obj for obj in objects if obj["kind"] in (POLICY, BINDING)]
    assert len(found) == 2 * len(render_directory("config/default").of(POLICY))
    assert not [obj for obj in found if "namespace" in obj["metadata"]]


def test_namespaced_variant_differs_only_in_bindings_and_watched_namespaces(
    default: Rendered, render: Callable[[str], Rendered]
) -> None:
    narrow = render("config/overlays/namespaced")
    assert default.names("ClusterRoleBinding") - narrow.names("ClusterRoleBinding") == {f"{PREFIX}-manager-rolebinding"}
    added = [each for each in narrow.of("RoleBinding") if each["metadata"]["namespace"] != NAMESPACE]
    assert watched(narrow) == ",".join(each["metadata"]["namespace"] for each in added)
    (binding,) = [
        each for each in default.of("ClusterRoleBinding") if each["metadata"]["name"].endswith("manager-rolebinding")
    ]
    for each in added:
        assert (each["roleRef"], each["subjects"]) == (binding["roleRef"], binding["subjects"])
    assert differing(default, narrow) == {("Deployment", CONTROLLER)}


def watched(rendered: Rendered) -> str:
    """The value of WATCH_NAMESPACE."""
    (container,) = rendered.one("Deployment", CONTROLLER)["spec"]["template"]["spec"]["containers"]
    return next(each["value"] for each in container["env"] if each["name"] == "WATCH_NAMESPACE")


def differing(one: Rendered, other: Rendered) -> set[tuple[str, str]]:
    """Kind and name of each object that is in both and differs."""
    found = {identity(each): each for each in one.objects}
    changed = [each for each in other.objects if identity(each) in found and found[identity(each)] != each]
    return {(each["kind"], each["metadata"]["name"]) for each in changed}


def identity(obj: Object) -> tuple[str, str, str]:
    """Kind, namespace and name of an object."""
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
