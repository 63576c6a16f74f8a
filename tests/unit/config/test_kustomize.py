"""Names, ports, paths and labels of the manifests are consistent with each other and with the code."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_api.images import Images
from memcached_webhooks.kinds import handlers
from unit.config.rendered import ROOT, Rendered

PREFIX = "memcached-operator"
NAMESPACE = "memcached-operator-system"
CERTIFICATE = "memcached-operator-webhook-cert"
FILES = sorted((ROOT / "config").rglob("*.yaml"))
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether labels match a selector."""
    return selector.items() <= labels.items()


def deployment_of(rendered: Rendered, selector: dict[str, str]) -> dict[str, Any]:
    """The one Deployment whose pods a selector matches."""
    (found,) = [
        each for each in rendered.of("Deployment") if selects(selector, each["spec"]["template"]["metadata"]["labels"])
    ]
    return found


AGENT = "memcached-agent"
"""The script of the container beside memcached, which no Deployment of the operator runs."""


def webhooks(rendered: Rendered) -> list[dict[str, Any]]:
    """The webhooks of all webhook configurations."""
    return [webhook for kind in WEBHOOKS for each in rendered.of(kind) for webhook in each["webhooks"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_is_valid_yaml(path: Path) -> None:
    assert list(yaml.safe_load_all(path.read_text()))


def test_all_objects_have_the_prefix_and_the_namespace(variant: Rendered) -> None:
    for each in variant.objects:
        if each["kind"] != "CustomResourceDefinition":
            assert each["metadata"]["name"].startswith(PREFIX), each
        assert each["metadata"].get("namespace", NAMESPACE) == NAMESPACE, each


def test_no_reference_lacks_the_prefix(variant: Rendered) -> None:
    assert not re.search(r"name(space)?: (system|controller-manager|webhook-service)$", yaml.dump_all(variant.objects))


def test_each_selector_matches_the_pods_of_one_deployment(variant: Rendered) -> None:
    for each in variant.of("Deployment"):
        assert deployment_of(variant, each["spec"]["selector"]["matchLabels"]) is each
    for each in variant.of("PodDisruptionBudget"):
        found = deployment_of(variant, each["spec"]["selector"]["matchLabels"])
        assert found["metadata"]["name"] == each["metadata"]["name"]
    for each in variant.of("Service"):
        deployment_of(variant, each["spec"]["selector"])


def test_target_ports_of_services_exist(variant: Rendered) -> None:
    for service in variant.of("Service"):
        (container,) = deployment_of(variant, service["spec"]["selector"])["spec"]["template"]["spec"]["containers"]
        names = {port["name"] for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= names, service


def test_probes_and_arguments_use_the_declared_ports(variant: Rendered) -> None:
    for container in variant.containers():
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports["metrics"] == 8383
        assert ports["probes"] == 8081
        assert f"--metrics-bind-address=:{ports['metrics']}" in container["args"]
        assert f"--health-probe-bind-address=:{ports['probes']}" in container["args"]
        for probe, path in (("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")):
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "probes"}


def test_commands_are_the_scripts_of_the_project(variant: Rendered) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert [container["command"] for container in variant.containers()] == [[name] for name in scripts if name != AGENT]


def test_image_tag_is_the_project_version(variant: Rendered) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = {container["image"] for container in variant.containers()}
    assert images == {f"localhost/memcached-operator/memcached-operator:{version}"}


def test_both_processes_have_the_same_memcached_image(variant: Rendered) -> None:
    values = [
        [variable["value"] for variable in container["env"] if variable["name"] == "RELATED_IMAGE_MEMCACHED"]
        for container in variant.containers()
    ]
    assert values == [["docker.io/library/memcached:1.6.38"]] * 2


def test_service_accounts_and_roles_exist(variant: Rendered) -> None:
    assert {pod["serviceAccountName"] for pod in variant.pods()} == variant.names("ServiceAccount")
    for kind, role in (("RoleBinding", "Role"), ("ClusterRoleBinding", "ClusterRole")):
        for binding in variant.of(kind):
            assert binding["roleRef"]["kind"] == role
            assert binding["roleRef"]["name"] in variant.names(role)
            for subject in binding["subjects"]:
                assert subject["name"] in variant.names("ServiceAccount")
                assert subject["namespace"] == NAMESPACE


def test_admission_process_has_no_permissions_and_no_token(variant: Rendered) -> None:
    bindings = variant.of("RoleBinding") + variant.of("ClusterRoleBinding")
    bound = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    assert bound == {f"{PREFIX}-controller-manager"}
    account = variant.one("ServiceAccount", f"{PREFIX}-webhook")
    pod = variant.one("Deployment", f"{PREFIX}-webhook")["spec"]["template"]["spec"]
    assert account["automountServiceAccountToken"] is pod["automountServiceAccountToken"] is False


def test_code_uses_the_names_of_the_manifests(default: Rendered) -> None:
    source = (ROOT / "operator/memcached_operator/app.py").read_text()
    (lease,) = [
        name
        for rule in default.one("Role", f"{PREFIX}-leader-election-role")["rules"]
        for name in rule.get("resourceNames", [])
    ]
    named = {
        CERTIFICATE,
        lease,
        f"{PREFIX}-webhook-service",
        *(name for kind in WEBHOOKS for name in default.names(kind)),
    }
    assert [name for name in named if f'"{name}"' not in source] == []


def test_rbac_rules_have_no_wildcards(variant: Rendered) -> None:
    for role in variant.of("Role") + variant.of("ClusterRole"):
        for rule in role["rules"]:
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"], role["metadata"]["name"]


def test_webhooks_reach_the_admission_process(variant: Rendered) -> None:
    for webhook in webhooks(variant):
        target = webhook["clientConfig"]["service"]
        assert target["namespace"] == NAMESPACE
        service = variant.one("Service", target["name"])
        (port,) = [port for port in service["spec"]["ports"] if port["port"] == target["port"]]
        assert deployment_of(variant, service["spec"]["selector"])["metadata"]["name"] == f"{PREFIX}-webhook"
        assert (port["port"], port["targetPort"]) == (443, "webhook")


def test_handlers_serve_exactly_the_paths_of_the_webhooks(variant: Rendered) -> None:
    served = handlers(Images("memcached:1.6"))
    assert {webhook["clientConfig"]["service"]["path"] for webhook in webhooks(variant)} == set(served)
    assert set(served) == {
        "/mutate-cache-example-com-v1-memcached",
        "/validate-cache-example-com-v1-memcached",
        "/mutate-app-example-com-v1-appservice",
        "/validate-app-example-com-v1-appservice",
    }


def test_webhook_rules_match_exactly_the_served_versions_of_one_kind(variant: Rendered) -> None:
    crds = {crd["spec"]["group"]: crd["spec"] for crd in variant.of("CustomResourceDefinition")}
    for webhook in webhooks(variant):
        (rule,) = webhook["rules"]
        (group,) = rule["apiGroups"]
        assert rule["resources"] == [crds[group]["names"]["plural"]]
        assert rule["apiVersions"] == [version["name"] for version in crds[group]["versions"] if version["served"]]
        assert webhook["clientConfig"]["service"]["path"].endswith(f"-{crds[group]['names']['singular']}")
        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert rule["scope"] == "Namespaced"


def test_webhooks_fail_closed_after_5_s_and_do_not_block_deletion(variant: Rendered) -> None:
    for webhook in webhooks(variant):
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"], webhook["sideEffects"]) == ("Fail", 5, "None")
        (condition,) = webhook["matchConditions"]
        assert condition["expression"] == "!has(object.metadata.deletionTimestamp)"


def test_certificate_is_mounted_at_the_path_of_the_flag(variant: Rendered) -> None:
    pod = variant.one("Deployment", f"{PREFIX}-webhook")["spec"]["template"]["spec"]
    (volume,), (container,) = pod["volumes"], pod["containers"]
    (mount,) = container["volumeMounts"]
    assert volume == {"name": mount["name"], "secret": {"secretName": CERTIFICATE}}
    assert f"--webhook-cert-path={mount['mountPath']}" in container["args"]


def test_only_the_default_variant_manages_certificates(render: Callable[[str], Rendered]) -> None:
    default, certmanager = render("config/default"), render("config/overlays/certmanager")
    manager = f"{PREFIX}-controller-manager"

    def arguments(rendered: Rendered) -> list[str]:
        return rendered.one("Deployment", manager)["spec"]["template"]["spec"]["containers"][0]["args"]

    assert [*arguments(certmanager), "--manage-certificates"] == arguments(default)
    assert f"{PREFIX}-certificates-role" not in certmanager.names("Role") | certmanager.names("ClusterRole")
    rules = default.one("Role", f"{PREFIX}-certificates-role")["rules"]
    assert [(rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (None, ["create"]),
        ([CERTIFICATE], ["get", "patch"]),
    ]
    cluster_rules = default.one("ClusterRole", f"{PREFIX}-certificates-role")["rules"]
    granted = {name for rule in cluster_rules for name in rule["resourceNames"]}
    assert granted == {name for kind in WEBHOOKS for name in default.names(kind)}


def test_certmanager_issues_the_certificate_and_injects_its_ca(render: Callable[[str], Rendered]) -> None:
    rendered = render("config/overlays/certmanager")
    certificate = rendered.one("Certificate", f"{PREFIX}-serving-cert")
    assert certificate["spec"]["secretName"] == CERTIFICATE
    assert f"{PREFIX}-webhook-service.{NAMESPACE}.svc" in certificate["spec"]["dnsNames"]
    assert {each["spec"]["issuerRef"]["name"] for each in rendered.of("Certificate")} == rendered.names("Issuer")
    for kind in WEBHOOKS:
        (each,) = rendered.of(kind)
        source = each["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
        assert source == f"{NAMESPACE}/{certificate['metadata']['name']}"


def test_pods_and_namespace_are_restricted(variant: Rendered) -> None:
    (namespace,) = variant.of("Namespace")
    labels = namespace["metadata"]["labels"]
    assert all(labels[f"pod-security.kubernetes.io/{mode}"] == "restricted" for mode in ("enforce", "audit", "warn"))
    for pod in variant.pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert all(volume.keys() == {"name", "secret"} for volume in pod.get("volumes", []))
    for container in variant.containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_operator_workloads_do_not_have_the_label_of_children(variant: Rendered) -> None:
    for each in variant.objects:
        assert each["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") in {None, "kustomize"}


def test_add_ons_are_separate_and_select_the_pods_of_each_variant(
    variant: Rendered, render: Callable[[str], Rendered]
) -> None:
    assert not variant.of("ServiceMonitor")
    assert not variant.of("NetworkPolicy")
    (monitor,) = render("config/prometheus").objects
    selected = [
        service
        for service in variant.of("Service")
        if selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
        and any(port.get("name") == monitor["spec"]["endpoints"][0]["port"] for port in service["spec"]["ports"])
    ]
    assert len(selected) == 2
    for policy in render("config/network-policy").objects:
        labels = policy["spec"]["podSelector"]["matchLabels"]
        templates = [each["spec"]["template"] for each in variant.of("Deployment")]
        pods = [each["spec"] for each in templates if selects(labels, each["metadata"]["labels"])]
        ports = {port["containerPort"] for pod in pods for port in pod["containers"][0]["ports"]}
        assert pods
        assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= ports


def test_olm_variant_differs_only_in_certificate_and_watched_namespaces(render: Callable[[str], Rendered]) -> None:
    olm, certmanager = render("config/overlays/olm"), render("config/overlays/certmanager")
    for container, other in zip(olm.containers(), certmanager.containers(), strict=True):
        env, others = ({each["name"]: each for each in each["env"]} for each in (container, other))
        if "WATCH_NAMESPACE" in env:
            source = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}
            assert env.pop("WATCH_NAMESPACE") == {"name": "WATCH_NAMESPACE", "valueFrom": source}
            assert others.pop("WATCH_NAMESPACE")["value"] == ""
        assert env == others
        different = {"env", "volumeMounts"}
        assert {k: v for k, v in container.items() if k not in different} == {
            k: v for k, v in other.items() if k not in different
        }
        assert not container.get("volumeMounts")
    assert [pod.get("volumes") or [] for pod in olm.pods()] == [[], []]
    assert olm.names("Secret") | olm.names("Certificate") == set()
    for kind in ("Role", "ClusterRole"):
        assert olm.names(kind) == certmanager.names(kind)
