"""A throw-away third kind: everything outside its own files follows from its registration."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from bundle import generate, images
from bundle.catalog import Packed
from bundle.csv import service_version
from bundle.objects import Rendered as BundleInput
from bundle.release import released
from crds import config
from crds.__main__ import write
from crds.docs import page
from crds.registered import registered
from memcached_api.registry import KINDS
from support import third_kind
from support.third_kind import SAMPLE, THIRD
from support.widget import WIDGET
from unit.config.rendered import Rendered, render_directory

PATHS = {"/mutate-test-example-com-v1-widget", "/validate-test-example-com-v1-widget"}
READ = ["list", "watch"]
WRITE = ["create", "delete", "get", "list", "patch", "watch"]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the third kind."""
    root = tmp_path_factory.mktemp("project")
    third_kind.generate(root)
    write(config.files(THIRD, root), check=True, root=root)
    return root


@pytest.fixture(scope="module")
def installed(generated: Path) -> Rendered:
    return render_directory(str(generated / "config/default"))


def rules_of(role: Any) -> dict[str, list[str]]:
    """The verbs of each resource in a role, as `group/resource`."""
    return {
        f"{group}/{resource}": rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_crd_is_installed(installed: Rendered):
    crd = installed.one("CustomResourceDefinition", "widgets.test.example.com")
    assert [version["name"] for version in crd["spec"]["versions"]] == ["v1", "v1beta1"]


def test_webhooks_are_called_for_every_version(installed: Rendered):
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    webhooks = [webhook for each in installed.of(*kinds) for webhook in each["webhooks"]]
    found = [webhook for webhook in webhooks if webhook["name"].endswith("widget.test.example.com")]
    assert {webhook["clientConfig"]["service"]["path"] for webhook in found} == PATHS
    for webhook in found:
        assert webhook["clientConfig"]["service"]["name"] == "memcached-operator-webhook-service"
        (rule,) = webhook["rules"]
        assert (rule["apiGroups"], rule["apiVersions"], rule["resources"]) == (
            ["test.example.com"],
            ["v1", "v1beta1"],
            ["widgets"],
        )


def test_controller_may_read_the_kind_and_write_its_children(installed: Rendered):
    rules = rules_of(installed.one("ClusterRole", "memcached-operator-manager-role"))
    before = rules_of(render_directory("config/default").one("ClusterRole", "memcached-operator-manager-role"))
    assert {resource: verbs for resource, verbs in rules.items() if resource not in before} == {
        "test.example.com/widgets": ["get", "list", "watch"],
        "test.example.com/widgets/status": ["patch"],
        "test.example.com/widgets/finalizers": ["update"],
        "monitoring.coreos.com/servicemonitors": WRITE,
        "networking.k8s.io/ingresses": READ,
    }
    assert {resource: verbs for resource, verbs in rules.items() if resource in before} == before


def test_controller_may_only_read_what_it_only_observes(installed: Rendered):
    role = installed.one("ClusterRole", "memcached-operator-manager-role")
    rules = rules_of(role)
    assert rules["autoscaling/horizontalpodautoscalers"] == rules["networking.k8s.io/ingresses"] == READ
    assert rules["policy/poddisruptionbudgets"] == WRITE, "a child may also be observed"
    assert len([rule for rule in role["rules"] if "poddisruptionbudgets" in rule["resources"]]) == 1


@pytest.mark.parametrize(("role", "cluster_role"), [("admin", "admin"), ("editor", "edit"), ("viewer", "view")])
def test_users_have_roles(installed: Rendered, role: str, cluster_role: str):
    found = installed.one("ClusterRole", f"memcached-operator-widget-{role}-role")
    assert found["metadata"]["labels"][f"rbac.authorization.k8s.io/aggregate-to-{cluster_role}"] == "true"
    assert set(rules_of(found)) == {f"test.example.com/widgets{part}" for part in ("", "/status", "/scale")}


def test_policy_allows_its_children(installed: Rendered):
    spec = installed.one("ValidatingAdmissionPolicy", "memcached-operator-children")["spec"]
    (owners,) = [each["expression"] for each in spec["variables"] if each["name"] == "owners"]
    assert ast.literal_eval(owners)[-2:] == [["test.example.com/v1", "Widget"], ["test.example.com/v1beta1", "Widget"]]
    rules = [(rule["apiGroups"], rule["resources"][0]) for rule in spec["matchConstraints"]["resourceRules"]]
    assert rules == [
        (["apps"], "deployments"),
        (["apps"], "statefulsets"),
        ([""], "services"),
        ([""], "configmaps"),
        (["policy"], "poddisruptionbudgets"),
        (["networking.k8s.io"], "networkpolicies"),
        (["monitoring.coreos.com"], "podmonitors"),
        (["monitoring.coreos.com"], "servicemonitors"),
    ]
    text = json.dumps(spec)
    assert text.count("in ['memcached', 'appservice', 'widget']") == 2, "labels of pods, and selectors"
    assert text.count("a Memcached, an AppService or a Widget") == 2
    plurals = "Deployments, StatefulSets, Services, ConfigMaps, PodDisruptionBudgets, NetworkPolicies, PodMonitors"
    assert f"of {plurals} or ServiceMonitors" in text


def test_bundle_contains_it(generated: Path, monkeypatch: pytest.MonkeyPatch):
    kinds = (*KINDS, WIDGET)
    monkeypatch.setattr(service_version, "REGISTERED", THIRD)
    monkeypatch.setattr(service_version, "KINDS", kinds)
    monkeypatch.setattr(generate, "KINDS", kinds)
    rendered = BundleInput(render_directory(str(generated / "config/manifests")).objects)
    release = released("0.1.0")
    deployments = images.with_image(rendered.of("Deployment"), release.operator_image)
    files = generate.bundle_files(rendered, release, "<svg/>", deployments)
    csv: Any = Packed(files).csv()
    owned = [each for each in csv["spec"]["customresourcedefinitions"]["owned"] if each["kind"] == "Widget"]
    assert [each["displayName"] for each in owned] == ["Widget", "Widget (v1beta1)"]
    assert owned[0]["description"] == WIDGET.description
    assert [each["kind"] for each in owned[0]["resources"]] == [
        "StatefulSet",
        "Service",
        "ConfigMap",
        "PodDisruptionBudget",
        "ServiceMonitor",
        "Pod",
    ]
    assert {each["webhookPath"] for each in csv["spec"]["webhookdefinitions"]} >= PATHS
    assert SAMPLE in json.loads(csv["metadata"]["annotations"]["alm-examples"])
    assert "bundle/manifests/test.example.com_widgets.yaml" in files


def test_reference_describes_it():
    assert "## Widget\n" in page((*KINDS, WIDGET))


def test_kind_without_a_controller_is_an_error():
    with pytest.raises(LookupError, match=r"Widget has no controller: add it to operator/memcached_operator/kinds.py"):
        registered((WIDGET,), ())


def test_policy_without_the_generated_parts_is_an_error():
    with pytest.raises(ValueError, match=r"children.yaml has no text that matches .*resourceRules"):
        config.with_kinds("spec: {}\n", THIRD)
