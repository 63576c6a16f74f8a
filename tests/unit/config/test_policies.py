"""The admission policies are bound to the controller's account, whatever its name, and cover all that it may write."""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bundle.installer import INSTALLER
from bundle.objects import documents
from unit.config.rendered import ROOT, Object, Rendered, render_directory

PREFIX = "memcached-operator"
NAMESPACE = f"{PREFIX}-system"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
CONTROLLER = f"{PREFIX}-controller-manager"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
NO_CHILDREN = {"memcacheds/status", "memcacheds/finalizers", "appservices/status", "appservices/finalizers", "events"}
"""What the controller writes beside children."""
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
    """Namespace and name of each account that a policy is bound to; every policy must be bound."""
    bindings = rendered.of(BINDING)
    assert {binding["spec"]["policyName"] for binding in bindings} == rendered.names(POLICY)
    assert rendered.of(POLICY)
    references = [binding["spec"]["paramRef"] for binding in bindings]
    return {(reference["namespace"], reference["name"]) for reference in references}


def test_the_policies_are_bound_to_the_controllers_account(installed: Rendered) -> None:
    assert bound(installed) == {(NAMESPACE, CONTROLLER)}
    account = installed.one("ServiceAccount", CONTROLLER)
    pod = installed.one("Deployment", CONTROLLER)["spec"]["template"]["spec"]
    assert account["metadata"]["namespace"] == NAMESPACE
    assert pod["serviceAccountName"] == CONTROLLER


@pytest.mark.parametrize("base", ["config/default", "config/overlays/certmanager"])
def test_the_bindings_follow_another_namespace_and_prefix(tmp_path: Path, base: str) -> None:
    directory = os.path.relpath(ROOT / base, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(OUTER.format(base=directory))
    rendered = render_directory(str(tmp_path))
    assert rendered.one("ServiceAccount", f"our-{CONTROLLER}")["metadata"]["namespace"] == "caches"
    assert bound(rendered) == {("caches", f"our-{CONTROLLER}")}


def test_with_olm_the_policies_are_applied_by_themselves(default: Rendered, render: Callable[[str], Rendered]) -> None:
    rendered, olm = render("config/overlays/olm-policies"), render("config/manifests")
    assert bound(rendered) == {(NAMESPACE, CONTROLLER)}
    assert rendered.names(POLICY) == default.names(POLICY)
    assert not olm.of(POLICY, BINDING)
    assert CONTROLLER in olm.names("ServiceAccount")


def test_every_policy_fails_closed_and_concerns_the_bound_account_only(default: Rendered) -> None:
    for policy in default.of(POLICY):
        spec = policy["spec"]
        assert (spec["failurePolicy"], spec["paramKind"]) == ("Fail", {"apiVersion": "v1", "kind": "ServiceAccount"})
        first = spec["matchConditions"][0]["expression"]
        account = "'system:serviceaccount:' + params.metadata.namespace + ':' + params.metadata.name"
        assert " ".join(first.split()) == f"request.userInfo.username == {account}"
    for binding in default.of(BINDING):
        assert binding["spec"]["validationActions"] == ["Deny"]
        # Where there is no such account, nobody is concerned: with Deny, everybody's requests would be denied.
        assert binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Allow"


def test_every_denial_is_a_forbidden_with_a_message(default: Rendered) -> None:
    for policy in default.of(POLICY):
        for validation in policy["spec"]["validations"]:
            assert validation["reason"] == "Forbidden"
            assert "memcached-operator" in validation["message"]


def written(rules: list[Object]) -> Iterator[str]:
    """The resources that rules let somebody write."""
    for rule in rules:
        if WRITES & set(rule["verbs"]):
            yield from rule["resources"]


def covered(policy: Object) -> set[str]:
    """The resources that a policy is about."""
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    return {resource for rule in rules for resource in rule["resources"]}


def test_the_policies_cover_every_child_that_the_controller_may_write(default: Rendered) -> None:
    children = set(written(default.one("ClusterRole", f"{PREFIX}-manager-role")["rules"])) - NO_CHILDREN
    wanted = children | {f"{resource}/*" for resource in children}
    assert covered(default.one(POLICY, f"{PREFIX}-children")) == wanted


def test_the_policies_cover_what_the_controller_may_write_for_its_certificate(default: Rendered) -> None:
    roles = [default.one(kind, f"{PREFIX}-certificates-role") for kind in ("Role", "ClusterRole")]
    wanted = {resource for role in roles for resource in written(role["rules"])}
    names = ("secrets", "webhook-configurations")
    assert set().union(*(covered(default.one(POLICY, f"{PREFIX}-{name}")) for name in names)) == wanted


def test_the_owners_are_our_kinds_in_each_version(default: Rendered) -> None:
    served = [
        [f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]]
        for crd in default.of("CustomResourceDefinition")
        for version in crd["spec"]["versions"]
    ]
    policy = default.one(POLICY, f"{PREFIX}-children")
    (owners,) = [each["expression"] for each in policy["spec"]["variables"] if each["name"] == "owners"]
    assert sorted(ast.literal_eval(owners)) == sorted(served)


def test_the_operator_has_no_right_on_policies(installed: Rendered) -> None:
    for role in installed.of("Role", "ClusterRole"):
        assert not [rule for rule in role["rules"] if any("admissionpolic" in each for each in rule["resources"])]


def test_the_installer_holds_the_policies_without_a_namespace() -> None:
    objects = documents((ROOT / INSTALLER).read_text(), INSTALLER)
    found = [obj for obj in objects if obj["kind"] in (POLICY, BINDING)]
    assert len(found) == 2 * len(render_directory("config/default").of(POLICY))
    assert not [obj for obj in found if "namespace" in obj["metadata"]]


def test_for_a_list_of_namespaces_only_the_bindings_and_the_watch_are_others(
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
    assert unlike(default, narrow) == {("Deployment", CONTROLLER)}


def watched(rendered: Rendered) -> str:
    """The value of WATCH_NAMESPACE."""
    (container,) = rendered.one("Deployment", CONTROLLER)["spec"]["template"]["spec"]["containers"]
    return next(each["value"] for each in container["env"] if each["name"] == "WATCH_NAMESPACE")


def unlike(one: Rendered, other: Rendered) -> set[tuple[str, str]]:
    """Kind and name of what both have, and not alike."""
    found = {identity(each): each for each in one.objects}
    changed = [each for each in other.objects if identity(each) in found and found[identity(each)] != each]
    return {(each["kind"], each["metadata"]["name"]) for each in changed}


def identity(obj: Object) -> tuple[str, str, str]:
    """What tells an object from all others."""
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
