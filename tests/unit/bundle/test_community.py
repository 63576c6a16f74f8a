"""Each rule of community catalogs is checked, and the committed bundle follows all of them."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from bundle.__main__ import main
from bundle.catalog import CATALOG, Packed
from bundle.community import CI_FILE, findings
from bundle.files import read_bundle
from bundle.release import ANNOTATIONS, CSV_FILE, MANIFESTS, ROOT

Object = dict[str, Any]
GOOD = read_bundle(ROOT)
LABELS = GOOD.annotations()
CI = yaml.safe_load((ROOT / CI_FILE).read_text())
PACKAGE = "operators.operatorframework.io.bundle.package.v1"


def changed(change: Callable[[Object, Object, Object], Any]) -> list[str]:
    """The findings after a change of the ClusterServiceVersion, the labels of the bundle, or ci.yaml."""
    csv, labels, ci = deepcopy(GOOD.csv()), dict(LABELS), deepcopy(CI)
    change(csv, labels, ci)
    files = {**GOOD.files, CSV_FILE: json.dumps(csv), ANNOTATIONS: json.dumps({"annotations": labels})}
    return findings(Packed(files), (ROOT / CATALOG).read_text(), ci)


def annotation(name: str, value: Any) -> Callable[[Object, Object, Object], Any]:
    """Set an annotation of the ClusterServiceVersion."""
    return lambda csv, labels, ci: csv["metadata"]["annotations"].update({name: value})


def spec(name: str, value: Any) -> Callable[[Object, Object, Object], Any]:
    """Set a field of its spec."""
    return lambda csv, labels, ci: csv["spec"].update({name: value})


def label(name: str, value: str) -> Callable[[Object, Object, Object], Any]:
    """Set a label of the bundle."""
    return lambda csv, labels, ci: labels.update({name: value})


def setting(name: str, value: Any) -> Callable[[Object, Object, Object], Any]:
    """Set a setting of ci.yaml."""
    return lambda csv, labels, ci: ci.update({name: value})


VIOLATIONS: dict[str, tuple[Callable[[Object, Object, Object], Any], str]] = {
    "capabilities": (annotation("capabilities", "Everything"), "metadata.annotations.capabilities"),
    "a category": (annotation("categories", "Database, Caches"), "metadata.annotations.categories"),
    "an image without a tag": (annotation("containerImage", "registry.example.com/operator"), "containerImage"),
    "a date": (annotation("createdAt", "yesterday"), "createdAt"),
    "the repository": (annotation("repository", "memcached-operator"), "repository"),
    "the support": (annotation("support", ""), "support"),
    "the short description": (annotation("description", "x" * 136), "metadata.annotations.description"),
    "the name in lists": (spec("displayName", "M" * 51), "spec.displayName"),
    "the description": (spec("description", "A cache."), "spec.description"),
    "no icon": (spec("icon", []), "spec.icon"),
    "the type of the icon": (spec("icon", [{"base64data": "AAAA", "mediatype": "image/tiff"}]), "spec.icon"),
    "the data of the icon": (spec("icon", [{"base64data": "A!", "mediatype": "image/png"}]), "spec.icon"),
    "the version": (spec("version", "v1.0"), "spec.version"),
    "the maintainers": (spec("maintainers", [{"name": "one"}]), "spec.maintainers"),
    "the links": (spec("links", []), "spec.links"),
    "the keywords": (spec("keywords", "cache"), "spec.keywords"),
    "the provider": (spec("provider", {"name": "me"}), "spec.provider.name"),
    "the oldest Kubernetes": (spec("minKubeVersion", "1.30"), "spec.minKubeVersion"),
    "the package": (label(PACKAGE, "other"), "the package is 'other'"),
    "the name": (lambda csv, labels, ci: csv["metadata"].update(name="memcached-operator"), "must be named"),
    "examples that are not JSON": (annotation("alm-examples", "{"), "alm-examples must be"),
    "no example": (annotation("alm-examples", "[]"), "alm-examples has no AppService"),
    "OpenShift": (label("com.redhat.openshift.versions", "v4.12"), "is 'v4.12', but minKubeVersion 1.30.0"),
    "a newer Kubernetes": (spec("minKubeVersion", "1.31.0"), "is that of OpenShift v4.18"),
    "the upgrade graph": (setting("updateGraph", "latest"), "updateGraph must be one of replaces-mode"),
    "no reviewers": (setting("reviewers", []), "reviewers must be a list"),
}


@pytest.mark.parametrize(("change", "message"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_violation_is_reported(change: Callable[[Object, Object, Object], Any], message: str) -> None:
    assert any(message in finding for finding in changed(change)), changed(change)


def test_committed_bundle_follows_every_rule() -> None:
    assert changed(lambda csv, labels, ci: None) == []


def test_network_policy_in_the_bundle_is_reported() -> None:
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"}}
    files = {**GOOD.files, f"{MANIFESTS}/policy.yaml": json.dumps(policy)}
    (found,) = findings(Packed(files), "", CI)
    assert found.startswith("NetworkPolicy closed")


def test_inline_bundle_in_the_catalog_is_reported() -> None:
    blob: Object = {
        "schema": "olm.bundle",
        "name": "a.v1.0.0",
        "properties": [{"type": "olm.bundle.object", "value": {}}],
    }
    (found,) = findings(GOOD, json.dumps(blob), CI)
    assert found.startswith("a.v1.0.0 has the property olm.bundle.object")


def test_command_prints_the_violations_and_fails(tmp_path: Path) -> None:
    for place, text in GOOD.files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text.replace("displayName: Memcached Operator", "displayName: MO"))
    failed = CliRunner().invoke(main, ["community", f"--bundle={tmp_path}"])
    assert (failed.exit_code, failed.output.count("\n")) == (1, 1)
    assert "spec.displayName of the ClusterServiceVersion must be a text of 3 to 50 characters" in failed.output
    assert CliRunner().invoke(main, ["community"]).exit_code == 0
