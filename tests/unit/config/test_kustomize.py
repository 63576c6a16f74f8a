"""What the manifests must not lose, and no deployment in a test would show: permissions, policies, add-ons."""

import os
import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from bundle.images import related_variables
from bundle.release import project_version
from memcached_api.images import DEFAULT_AGENT_IMAGE, DEFAULT_IMAGE
from memcached_api.registry import KINDS
from support.air_gap import listed_images
from support.code_blocks import starting
from unit.config.rendered import ROOT, Object, Rendered, render_directory

PREFIX = "memcached-operator"
NAMESPACE = f"{PREFIX}-system"
CONTROLLER = f"{PREFIX}-controller-manager"
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
CERTIFICATE = f"{PREFIX}-webhook-cert"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
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


VARIANTS = (
    "config/default",
    "config/overlays/certmanager",
    "config/overlays/namespaced",
    "config/overlays/memcached-only",
)
"""The directories that install the operator with kubectl."""


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Rendered:
    """Each variant for kubectl."""
    return render_directory(request.param)


@pytest.fixture
def default() -> Rendered:
    """The variant whose controller issues the webhook certificate."""
    return render_directory("config/default")


def bound(rendered: Rendered) -> set[tuple[str, str]]:
    """Namespace and name of each service account that a policy is bound to; fails if a policy is not bound."""
    bindings = rendered.of(BINDING)
    assert {binding["spec"]["policyName"] for binding in bindings} == rendered.names(POLICY)
    assert rendered.of(POLICY)
    references = [binding["spec"]["paramRef"] for binding in bindings]
    return {(reference["namespace"], reference["name"]) for reference in references}


def test_policies_are_bound_to_the_controllers_service_account(variant: Rendered) -> None:
    assert bound(variant) == {(NAMESPACE, CONTROLLER)}
    assert variant.one("Deployment", CONTROLLER)["spec"]["template"]["spec"]["serviceAccountName"] == CONTROLLER


@pytest.mark.parametrize("base", ["config/default", "config/overlays/certmanager", "config/overlays/memcached-only"])
def test_bindings_follow_the_namespace_and_prefix_of_an_overlay(tmp_path: Path, base: str) -> None:
    directory = os.path.relpath(ROOT / base, tmp_path)
    (tmp_path / "kustomization.yaml").write_text(OUTER.format(base=directory))
    assert bound(render_directory(str(tmp_path))) == {("caches", f"our-{CONTROLLER}")}


def test_policies_fail_closed_but_do_not_apply_without_the_service_account(default: Rendered) -> None:
    assert [policy["spec"]["failurePolicy"] for policy in default.of(POLICY)] == ["Fail"] * len(default.of(POLICY))
    for binding in default.of(BINDING):
        assert binding["spec"]["validationActions"] == ["Deny"]
        # With Deny, all requests of all users would be denied.
        assert binding["spec"]["paramRef"]["parameterNotFoundAction"] == "Allow"


def written(role: Object) -> Iterator[str]:
    """The resources that a role allows to be written."""
    for rule in role["rules"]:
        if WRITES & set(rule["verbs"]):
            yield from rule["resources"]


def covered(default: Rendered, *names: str) -> set[str]:
    """The resources that policies match."""
    policies = [default.one(POLICY, f"{PREFIX}-{name}") for name in names]
    rules = [rule for policy in policies for rule in policy["spec"]["matchConstraints"]["resourceRules"]]
    return {resource for rule in rules for resource in rule["resources"]}


def test_policies_cover_every_resource_that_the_controller_may_write(default: Rendered) -> None:
    manager = set(written(default.one("ClusterRole", f"{PREFIX}-manager-role")))
    children = manager - NOT_CHILDREN
    assert covered(default, "children") == children | {f"{resource}/*" for resource in children}
    assert manager >= POD_WRITES
    assert covered(default, "pods") == {"pods", "pods/*"}
    certificates = [default.one(kind, f"{PREFIX}-certificates-role") for kind in ("Role", "ClusterRole")]
    wanted = {resource for role in certificates for resource in written(role)}
    assert covered(default, "secrets", "webhook-configurations") == wanted


def test_permissions_of_certificate_management_are_for_named_objects_of_the_default_variant(default: Rendered) -> None:
    rules = default.one("Role", f"{PREFIX}-certificates-role")["rules"]
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (None, ["create"]),
        ([CERTIFICATE], ["get", "patch"]),
    ]
    cluster_rules = default.one("ClusterRole", f"{PREFIX}-certificates-role")["rules"]
    granted = {name for rule in cluster_rules for name in rule["resourceNames"]}
    assert granted == {name for kind in WEBHOOKS for name in default.names(kind)}
    certmanager = render_directory("config/overlays/certmanager")
    assert f"{PREFIX}-certificates-role" not in certmanager.names("Role") | certmanager.names("ClusterRole")


def test_only_the_lease_of_the_operator_can_be_changed(default: Rendered) -> None:
    rules = default.one("Role", f"{PREFIX}-leader-election-role")["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (["leases"], None, ["create"]),
        (["leases"], ["memcached-operator"], ["get", "update"]),
    ]


def test_admission_process_has_no_permissions_and_no_token(variant: Rendered) -> None:
    bindings = variant.of("RoleBinding", "ClusterRoleBinding")
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == {CONTROLLER}
    account = variant.one("ServiceAccount", f"{PREFIX}-webhook")
    pod = variant.one("Deployment", f"{PREFIX}-webhook")["spec"]["template"]["spec"]
    assert account["automountServiceAccountToken"] is pod["automountServiceAccountToken"] is False


def test_containers_cannot_write_and_have_the_same_default_images(variant: Rendered) -> None:
    """The API server enforces the rest of `restricted`: the namespace has the label."""
    containers = list(variant.containers())
    assert [each["securityContext"]["readOnlyRootFilesystem"] for each in containers] == [True] * 2
    assert [each["resources"]["requests"].keys() for each in containers] == [{"cpu", "memory"}] * 2
    images = [related_variables(each) for each in containers]
    assert images == [{"RELATED_IMAGE_MEMCACHED": DEFAULT_IMAGE, "RELATED_IMAGE_AGENT": DEFAULT_AGENT_IMAGE}] * 2


def test_overlay_in_the_docs_replaces_both_images(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(starting("install-kubectl.md", "# kustomization.yaml\n"))
    shutil.copytree(ROOT / "config", tmp_path / "memcached-operator/config")
    containers = list(render_directory(str(tmp_path)).containers())
    name = "registry.example.com/memcached-operator"
    assert [each["image"] for each in containers] == [f"{name}:{project_version()}"] * 2
    agents = [related_variables(each)["RELATED_IMAGE_AGENT"] for each in containers]
    assert agents == [f"{name}-agent:{project_version()}"] * 2


def test_list_of_images_has_those_of_the_bundle_and_of_the_installer(default: Rendered) -> None:
    images = {each["image"] for each in default.containers()}
    images |= {image for each in default.containers() for image in related_variables(each).values()}
    assert set(listed_images()) == images
    assert len(images) == 3
    assert listed_images("a.example.com/bundle:v1")[-1] == "a.example.com/bundle:v1"


def test_namespaced_variant_has_permissions_in_the_watched_namespaces_only(default: Rendered) -> None:
    narrow = render_directory("config/overlays/namespaced")
    manager = f"{PREFIX}-manager-rolebinding"
    assert default.names("ClusterRoleBinding") - narrow.names("ClusterRoleBinding") == {manager}
    added = [each for each in narrow.of("RoleBinding") if each["metadata"]["namespace"] != NAMESPACE]
    (container,) = narrow.one("Deployment", CONTROLLER)["spec"]["template"]["spec"]["containers"]
    (watched,) = [each["value"] for each in container["env"] if each["name"] == "WATCH_NAMESPACE"]
    assert watched == ",".join(each["metadata"]["namespace"] for each in added)
    cluster = default.one("ClusterRoleBinding", manager)
    assert all((each["roleRef"], each["subjects"]) == (cluster["roleRef"], cluster["subjects"]) for each in added)


def keys(rendered: Rendered) -> set[tuple[str, str]]:
    """Kind and name of every object."""
    return {(each["kind"], each["metadata"]["name"]) for each in rendered.objects}


def arguments(rendered: Rendered) -> list[str]:
    """The arguments of both processes that name kinds."""
    return [arg for container in rendered.containers() for arg in container["args"] if arg.startswith("--kinds")]


def test_memcached_alone_has_nothing_of_the_other_kind(default: Rendered) -> None:
    alone = render_directory("config/overlays/memcached-only")
    roles = {("ClusterRole", f"{PREFIX}-appservice-{name}-role") for name in ("admin", "editor", "viewer")}
    assert keys(default) - keys(alone) == {("CustomResourceDefinition", "appservices.app.example.com"), *roles}
    assert keys(alone) < keys(default)
    assert [each["metadata"]["name"] for each in alone.objects if "appservice" in str(each).lower()] == []
    assert (arguments(default), arguments(alone)) == ([], ["--kinds=memcached,memcachedproxy"] * 2)


def test_memcached_alone_has_everything_of_its_own_kind(default: Rendered) -> None:
    alone = render_directory("config/overlays/memcached-only")
    role = f"{PREFIX}-manager-role"
    rules, fewer = (each.one("ClusterRole", role)["rules"] for each in (default, alone))
    assert fewer == [rule for rule in rules if rule["apiGroups"] != ["app.example.com"]]
    for kind in WEBHOOKS:
        (before,), (after,) = default.of(kind), alone.of(kind)
        assert after["webhooks"] == before["webhooks"][:2]
    changed = {WEBHOOKS[0], WEBHOOKS[1], "Deployment", "ClusterRole", POLICY}
    for each in alone.objects:
        if each != (before := default.one(each["kind"], each["metadata"]["name"])):
            assert each["kind"] in changed
            assert each["metadata"] == before["metadata"]


@pytest.mark.parametrize("base", VARIANTS[:3])
def test_memcached_alone_can_be_combined_with_other_overlays(tmp_path: Path, base: str) -> None:
    directory, component = (
        os.path.relpath(ROOT / path, tmp_path) for path in (base, "config/components/memcached-only")
    )
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{directory}]\ncomponents: [{component}]\n")
    rendered = render_directory(str(tmp_path))
    assert [each["metadata"]["name"] for each in rendered.objects if "appservice" in str(each).lower()] == []
    assert arguments(rendered) == ["--kinds=memcached,memcachedproxy"] * 2


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether labels match a selector."""
    return selector.items() <= labels.items()


def test_budgets_and_add_ons_select_the_pods_of_the_operator(default: Rendered) -> None:
    templates = {each["metadata"]["name"]: each["spec"]["template"] for each in default.of("Deployment")}
    for budget in default.of("PodDisruptionBudget"):
        labels = templates[budget["metadata"]["name"]]["metadata"]["labels"]
        assert selects(budget["spec"]["selector"]["matchLabels"], labels)
    (monitor,) = render_directory("config/prometheus").of("ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    selected = [
        port["name"]
        for service in default.of("Service")
        if selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        for port in service["spec"]["ports"]
    ]
    assert selected.count(endpoint["port"]) == len(templates)
    for policy in render_directory("config/network-policy").objects:
        labels = policy["spec"]["podSelector"]["matchLabels"]
        pods = [each["spec"] for each in templates.values() if selects(labels, each["metadata"]["labels"])]
        ports = {port["containerPort"] for pod in pods for port in pod["containers"][0]["ports"]}
        assert pods
        assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= ports


def test_admission_can_be_restricted_to_the_addresses_of_the_api_servers() -> None:
    everyone, some = (
        {each["metadata"]["name"]: deepcopy(each["spec"]) for each in render_directory(directory).objects}
        for directory in ("config/network-policy", "config/overlays/admission-clients")
    )
    name = f"{PREFIX}-allow-webhook-traffic"
    (rule,) = some[name].pop("ingress")
    assert [peer.keys() for peer in rule.pop("from")] == [{"ipBlock"}]
    assert [rule] == everyone[name].pop("ingress")
    assert some == everyone
