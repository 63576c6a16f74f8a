"""The committed chart has the objects of each variant in config/, and each of its settings changes only its own."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bundle.installer import cluster_scoped
from bundle.objects import Object, parse
from bundle.release import project_version
from chart.generate import FOLDER
from chart.schema import OTHERS, RESERVED
from support import air_gap
from support.charts import KEEP, MANAGED_BY, NAMESPACE, VARIANTS, Key, by_key, comparable, merged
from support.helm import objects
from unit.config.rendered import ROOT, render_directory

DIGEST = "sha256:" + "b" * 64
CLIENTS = [{"ipBlock": {"cidr": "192.0.2.1/32"}}]
ADD_ONS = ("config/network-policy", "config/prometheus", "config/grafana")
VARIANT_DIRECTORIES: Mapping[str, tuple[str, ...]] = {
    "cert-manager": ("config/overlays/certmanager",),
    "namespaced": ("config/overlays/namespaced",),
    "memcached-only": ("config/overlays/memcached-only",),
    "add-ons": ("config/default", *ADD_ONS),
}
"""The directories of config/ with the same objects as each variant of the chart."""
OUTER = "resources: [{base}]\nnamespace: caches\n"


def of_kustomize(directory: str) -> list[Object]:
    """The objects of a directory, as `make build-installer` writes them."""
    return [cluster_scoped(each) for each in render_directory(directory).objects]


def test_default_values_give_the_objects_of_the_installer() -> None:
    installer = parse((ROOT / "dist/install.yaml").read_text(), "dist/install.yaml")
    assert comparable(objects({})) == comparable(installer)


@pytest.mark.parametrize("variant", VARIANT_DIRECTORIES)
def test_variant_has_the_objects_of_its_directories(variant: str) -> None:
    wanted = [each for directory in VARIANT_DIRECTORIES[variant] for each in of_kustomize(directory)]
    assert comparable(objects(VARIANTS[variant])) == comparable(wanted)


def test_variants_can_be_combined(tmp_path: Path) -> None:
    up = Path("../" * len(tmp_path.parts[1:])) / ROOT.relative_to("/") / "config"
    parts = {"resources": [f"{up}/overlays/certmanager"], "components": [f"{up}/components/memcached-only"]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(parts))
    values = merged(dict(VARIANTS["cert-manager"]), VARIANTS["memcached-only"])
    assert comparable(objects(values)) == comparable(of_kustomize(str(tmp_path)))


def test_clients_of_admission_are_those_of_the_overlay() -> None:
    policies = comparable(of_kustomize("config/overlays/admission-clients"))
    found = comparable(objects({"networkPolicy": {"enabled": True, "admissionFrom": CLIENTS}}))
    assert {key: found[key] for key in policies} == policies


def test_switched_off_parts_are_exactly_their_objects() -> None:
    every, rest = by_key(objects({})), by_key(objects(VARIANTS["minimal"]))
    policies = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert {kind for kind, _, _ in every.keys() - rest.keys()} == policies | {
        "CustomResourceDefinition",
        "PodDisruptionBudget",
    }
    assert rest.items() <= every.items()


def test_another_namespace_is_that_of_kustomize(tmp_path: Path) -> None:
    base = Path("../" * len(tmp_path.parts[1:])) / (ROOT / "config/default").relative_to("/")
    (tmp_path / "kustomization.yaml").write_text(OUTER.format(base=base))
    assert comparable(objects({}, "caches")) == comparable(of_kustomize(str(tmp_path)))
    assert NAMESPACE not in json.dumps(objects(VARIANTS["everything"], "caches"))


@pytest.mark.parametrize("namespace", ["123", "true"])
def test_name_of_the_namespace_stays_a_text(namespace: str) -> None:
    found = json.dumps(objects({}, "another-namespace")).replace("another-namespace", namespace)
    assert objects({}, namespace) == json.loads(found)


@pytest.mark.parametrize("source", ["operator", "cert-manager"])
def test_all_objects_have_the_labels_of_the_release_and_definitions_are_kept(source: str) -> None:
    for each in objects(merged(dict(VARIANTS["everything"]), {"certificates": {"source": source}})):
        labels, annotations = each["metadata"]["labels"], each["metadata"]["annotations"]
        assert (labels[MANAGED_BY], labels["app.kubernetes.io/instance"]) == ("Helm", "memcached-operator")
        assert labels["helm.sh/chart"] == f"memcached-operator-{project_version()}"
        assert labels.items() >= VARIANTS["everything"]["commonLabels"].items()
        assert annotations["owner"] == "team-a"
        assert (annotations.get(KEEP) == "keep") == (each["kind"] == "CustomResourceDefinition")


def values_at(path: str, value: Any) -> Object:
    """Values with one value at a path."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


PODS: Mapping[str, Any] = {
    "replicas": 3,
    "resources": {"limits": {"memory": "1Gi"}},
    "extraArgs": ["--log-format=json"],
    "podLabels": {"team": "a"},
    "podAnnotations": {"note": "a: b"},
    "priorityClassName": "high",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
"""A value for each setting of a component."""
CHANGES: Mapping[str, tuple[Any, set[str]]] = {
    "image.repository": ("registry.example.com/operator", {"Deployment"}),
    "image.tag": ("9", {"Deployment"}),
    "image.digest": (DIGEST, {"Deployment"}),
    "image.pullPolicy": ("Always", {"Deployment"}),
    "agentImage.repository": ("registry.example.com/agent", {"Deployment"}),
    "agentImage.tag": ("9", {"Deployment"}),
    "agentImage.digest": (DIGEST, {"Deployment"}),
    "memcachedImage.repository": ("registry.example.com/memcached", {"Deployment"}),
    "memcachedImage.tag": ("9", {"Deployment"}),
    "memcachedImage.digest": (DIGEST, {"Deployment"}),
    "imagePullSecrets": ([{"name": "registry"}], {"Deployment"}),
    "watchNamespaces": (["team-a"], {"Deployment", "ClusterRoleBinding", "RoleBinding"}),
    "kinds": (
        ["memcached"],
        {
            "ClusterRole", "CustomResourceDefinition", "Deployment", "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration",
        },
    ),
    "clusterDomain": ("cluster.example", {"Deployment"}),
    "logLevel": ("debug", {"Deployment"}),
    "logFormat": ("json", {"Deployment"}),
    **{f"{part}.{name}": (value, {"Deployment"}) for part in ("controller", "webhook") for name, value in PODS.items()},
    "certificates.source": (
        "cert-manager",
        {
            "Certificate", "ClusterRole", "ClusterRoleBinding", "Deployment", "Issuer", "MutatingWebhookConfiguration",
            "Role", "RoleBinding", "ValidatingWebhookConfiguration",
        },
    ),
    "crds.enabled": (False, {"CustomResourceDefinition"}),
    "admissionPolicies.enabled": (False, {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}),
    "podDisruptionBudgets.enabled": (False, {"PodDisruptionBudget"}),
    "networkPolicy.enabled": (False, {"NetworkPolicy"}),
    "networkPolicy.admissionFrom": (CLIENTS, {"NetworkPolicy"}),
    "networkPolicy.metricsFrom": (CLIENTS, {"NetworkPolicy"}),
    "monitoring.enabled": (False, {"PrometheusRule", "ServiceMonitor"}),
    "monitoring.dashboards": (False, {"ConfigMap"}),
    "monitoring.interval": ("30s", {"ServiceMonitor"}),
    "monitoring.labels": ({"release": "prometheus"}, {"PrometheusRule", "ServiceMonitor"}),
}  # fmt: skip
"""Another value for each setting, and the kinds of the objects that it changes, if all add-ons are on."""
EVERYWHERE: Mapping[str, Any] = {"commonLabels": {"team": "a"}, "commonAnnotations": {"team": "a"}}
"""Settings of all objects."""


@cache
def with_add_ons() -> Mapping[Key, Object]:
    """The objects with all add-ons."""
    return by_key(objects(VARIANTS["add-ons"]))


def changed_kinds(values: Object) -> set[str]:
    """The kinds of the objects that differ from those with all add-ons."""
    before, after = with_add_ons(), by_key(objects(merged(dict(VARIANTS["add-ons"]), values)))
    return {key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


@pytest.mark.parametrize("path", CHANGES)
def test_setting_changes_its_objects_only(path: str) -> None:
    value, kinds = CHANGES[path]
    assert changed_kinds(values_at(path, value)) == kinds


def test_images_by_tag_and_by_digest() -> None:
    tagged, pinned = ({"image": {"repository": "a/b", "tag": "9", "digest": each}} for each in ("", DIGEST))
    found = [each for values in (tagged, pinned) for each in objects(values) if each["kind"] == "Deployment"]
    images = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in found]
    assert images == ["a/b:9", "a/b:9", f"a/b@{DIGEST}", f"a/b@{DIGEST}"]


def leaves(schema: Object, path: str = "") -> Iterator[str]:
    """The path of each setting."""
    for name, each in schema["properties"].items():
        if "additionalProperties" in each and each.get("properties"):
            yield from leaves(each, f"{path}{name}.")
        elif f"{path}{name}" not in OTHERS:
            yield f"{path}{name}"


def test_every_setting_has_a_test() -> None:
    schema: Object = json.loads((ROOT / FOLDER / "values.schema.json").read_text())
    assert set(leaves(schema)) == {*CHANGES, *EVERYWHERE}


def test_keys_that_the_chart_writes_cannot_be_set_as_common_ones() -> None:
    given = {*VARIANTS["everything"]["commonLabels"], *VARIANTS["everything"]["commonAnnotations"]}
    given |= {*VARIANTS["everything"]["monitoring"]["labels"]}
    for values in VARIANTS.values():
        for each in objects(values):
            written = {*each["metadata"]["labels"], *each["metadata"].get("annotations", {})} - given
            assert [key for key in written if not re.fullmatch("|".join(RESERVED), key)] == []


def test_values_for_a_mirror_use_only_its_images_and_the_pull_secret() -> None:
    found = air_gap.of_chart()
    assert air_gap.images(found) == air_gap.mirrored()
    assert air_gap.pull_secrets(found) == [["registry"]] * 2
