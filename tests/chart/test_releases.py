"""Installing, upgrading and removing the chart on a real API server, with the commands of docs/helm.md.

The nodes are simulated: the operator does not run. tests/olm/test_chart.py has the same changes with running caches.
"""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bundle.objects import Object, parse
from integration.control_plane import ControlPlane, control_plane
from support import programs
from support.charts import KEEP, MANAGED_BY, NAMESPACE, ROOT, VARIANTS
from support.code_blocks import page_commands
from support.helm import CHART, Helm, objects

BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").decode()
CONFIGURATION = "mutatingwebhookconfiguration/memcached-operator-mutating-webhook-configuration"
CONTROLLER = "deployment/memcached-operator-controller-manager"
ROLLOUTS = "; ".join(
    f"kubectl -n {NAMESPACE} rollout status deployment/memcached-operator-{name} --timeout=5m"
    for name in ("controller-manager", "webhook")
)
MEMCACHED = {"apiVersion": "cache.example.com/v1", "kind": "Memcached", "metadata": {"name": "a"}, "spec": {}}


@dataclass(frozen=True)
class Shell:
    """Runs the commands of docs/helm.md in a directory with the chart and dist/install.yaml."""

    folder: Path
    helm: Helm
    kubeconfig: Path

    def run(self, script: str, *, check: bool = True) -> str:
        """Run a script; return its output. With `check`, it must succeed."""
        path = os.pathsep.join([str(self.helm.folder), os.environ["PATH"]])
        environ = {**os.environ, "PATH": path, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.folder)}
        words = ["bash", "-euo", "pipefail", "-c", script]
        done = programs.run(words, cwd=self.folder, env=environ)
        assert not check or done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def follow(self, script: str, *more: str) -> str:
        """Run commands of a page, the last one with further options."""
        return self.run(" ".join([script.rstrip(), *more]))

    def objects(self) -> dict[str, Object]:
        """The objects of the chart that exist, by kind and name."""
        manifest = self.folder / "objects.yaml"
        manifest.write_text(yaml.safe_dump_all(objects({})))
        found = json.loads(self.run(f"kubectl get --ignore-not-found -o json -f {manifest}") or '{"items": []}')
        return {f"{each['kind'].lower()}/{each['metadata']['name']}": each for each in found["items"]}

    def uids(self) -> dict[str, str]:
        """The uid of each object of the chart that exists."""
        return {name: each["metadata"]["uid"] for name, each in self.objects().items()}

    def pods(self) -> set[str]:
        """The uids of the operator's pods."""
        return set(self.run(f"kubectl -n {NAMESPACE} get pods -o jsonpath='{{.items[*].metadata.uid}}'").split())

    @property
    def merge(self) -> list[str]:
        """The option that Helm 4 needs for objects of another client."""
        return ["--server-side=false"] if self.helm.name == "helm-4" else []


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane for these tests."""
    with control_plane(f"chart-{os.getpid()}") as started:
        yield started


@pytest.fixture
def shell(plane: ControlPlane, program: Helm, tmp_path: Path) -> Iterator[Shell]:
    """A shell; it begins and ends without anything of the chart."""
    for name in ("charts", "dist"):
        (tmp_path / name).symlink_to(ROOT / name)
    found = Shell(tmp_path, program, plane.kubeconfig)
    names = " ".join(name for name in (CRD_NAMES))
    remove = (
        f"kubectl delete --ignore-not-found -f dist/install.yaml --wait; kubectl delete crd --ignore-not-found {names}"
    )
    found.run(remove)
    yield found
    found.run(remove)


CRD_NAMES = ("memcacheds.cache.example.com", "memcachedproxies.cache.example.com", "appservices.app.example.com")


def trust(shell: Shell) -> None:
    """Write a CA bundle, as the controller's leader does."""
    patch = json.dumps([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": BUNDLE}])
    shell.run(f"kubectl patch {CONFIGURATION} --type=json --field-manager=memcached-operator -p '{patch}'")


def trusted(shell: Shell) -> bool:
    """Whether that CA bundle is still there."""
    configuration = shell.objects()[CONFIGURATION]
    return configuration["webhooks"][0]["clientConfig"].get("caBundle") == BUNDLE


def arguments(shell: Shell) -> list[str]:
    """The arguments of the controller."""
    return shell.objects()[CONTROLLER]["spec"]["template"]["spec"]["containers"][0]["args"]


def test_install_upgrade_roll_back_and_uninstall(shell: Shell) -> None:
    assert "memcached-operator-controller-manager" in shell.follow(page_commands("helm.md", "## Installing\n"))
    first = shell.uids()
    assert len(first) == len(objects({}))
    trust(shell)

    second = shell.run(f"helm install second charts/memcached-operator --namespace {NAMESPACE}", check=False)
    assert "cannot be imported into the current release" in second or "exists" in second

    shell.follow(page_commands("helm.md", "## Upgrading\n"), "--set logLevel=debug")
    assert ("--log-level=debug" in arguments(shell), trusted(shell)) == (True, True)
    shell.run(f"helm rollback memcached-operator 1 --namespace {NAMESPACE}")
    assert ("--log-level=debug" in arguments(shell), trusted(shell)) == (False, True)
    assert shell.uids() == first

    shell.follow(page_commands("helm.md", "## Uninstalling\n"))
    kept = {name: uid for name, uid in first.items() if name.startswith("customresourcedefinition/")}
    assert (len(kept), shell.uids()) == (len(CRD_NAMES), kept)
    shell.run(f"kubectl -n default apply -f - <<'EOF'\n{json.dumps(MEMCACHED)}\nEOF")
    shell.follow(page_commands("helm.md", "## Installing\n"))
    assert shell.run("kubectl -n default get memcached a -o name").strip() == "memcached.cache.example.com/a"
    assert shell.uids().items() >= kept.items()
    shell.follow(page_commands("helm.md", "## Uninstalling\n"))


def test_definitions_can_be_switched_off_later(shell: Shell) -> None:
    shell.follow(page_commands("helm.md", "## Installing\n"))
    first = shell.uids()
    shell.follow(
        page_commands("helm.md", "## Upgrading\n"), "--set crds.enabled=false --set podDisruptionBudgets.enabled=false"
    )
    gone = {name for name in first if name.startswith("poddisruptionbudget/")}
    assert shell.uids() == {name: uid for name, uid in first.items() if name not in gone}
    shell.follow(page_commands("helm.md", "## Uninstalling\n"))
    assert {name.partition("/")[0] for name in shell.uids()} == {"customresourcedefinition"}


def test_installation_of_kubectl_becomes_a_release_and_back(shell: Shell) -> None:
    apply = "kubectl apply --server-side --force-conflicts -f dist/install.yaml"
    shell.run(f"{apply}; {ROLLOUTS}")
    trust(shell)
    before = shell.objects()
    refused = shell.run(f"helm install memcached-operator charts/memcached-operator -n {NAMESPACE}", check=False)
    assert "cannot be imported into the current release" in refused
    assert contents(shell.objects()) == contents(before)

    pods = shell.pods()
    assert len(pods) == sum(each["spec"]["replicas"] for each in before.values() if each["kind"] == "Deployment")
    shell.follow(page_commands("helm.md", "### From kubectl to Helm\n"), "--wait", *shell.merge)
    found = shell.objects()
    assert shell.pods() == pods
    assert contents(found) == contents(before)
    assert trusted(shell)
    assert {each["metadata"]["labels"][MANAGED_BY] for each in found.values()} == {"Helm"}
    definitions = [each for each in found.values() if each["kind"] == "CustomResourceDefinition"]
    assert [each["metadata"]["annotations"][KEEP] for each in definitions] == ["keep"] * 2

    shell.follow(page_commands("helm.md", "## Upgrading\n"), "--set logLevel=debug")
    assert "--log-level=debug" in arguments(shell)
    shell.follow(page_commands("helm.md", "## Upgrading\n"), "--set logLevel=info --set controller.replicas=1")
    assert ("--log-level=debug" in arguments(shell), shell.objects()[CONTROLLER]["spec"]["replicas"]) == (False, 1)
    shell.follow(page_commands("helm.md", "## Upgrading\n"), "--set controller.replicas=2")

    before, pods = shell.objects(), shell.pods()
    shell.follow(page_commands("helm.md", "### From Helm to kubectl\n"))
    found = shell.objects()
    assert shell.pods() == pods
    assert shell.run(f"helm list -q -n {NAMESPACE}").strip() == ""
    assert contents(found) == contents(before)
    assert trusted(shell)
    labelled = {each["metadata"].get("labels", {}).get(MANAGED_BY) for each in found.values()}
    assert labelled == {"kustomize", "Helm"}, "only the definitions keep Helm's label: the manifest has none for them"


def contents(found: dict[str, Object]) -> dict[str, Object]:
    """The uid of each object, and everything in it except for its metadata and its status."""
    return {
        name: {"uid": each["metadata"]["uid"], **{key: each[key] for key in each.keys() - {"metadata", "status"}}}
        for name, each in found.items()
    }


def test_notes_name_the_namespace_and_a_watched_one(shell: Shell, tmp_path: Path) -> None:
    found: dict[str, str] = {}
    for variant in ("default", "namespaced", "minimal"):
        (tmp_path / "values.json").write_text(json.dumps(VARIANTS[variant]))
        options = f"--namespace {NAMESPACE} --values values.json --dry-run=client"
        found[variant] = shell.run(f"helm install memcached-operator {CHART} {options}").partition("\nNOTES:\n")[2]
    assert "-n team-a apply -f -" in found["namespaced"]
    assert "kubectl apply -f -" in found["default"]
    assert [name for name, text in found.items() if "crds.enabled is false" in text] == ["minimal"]
    (example,) = parse(found["default"].split("<<EOF\n")[1].split("   EOF")[0], "NOTES.txt")
    assert example["kind"] == "Memcached"
