"""Changing the installation method, and downgrades, with the commands of docs/install*.md."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bundle.subscription import NAMESPACE, subscription
from support import installed, kube, olm, programs
from support.audit import Audit
from support.code_blocks import page_commands
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, children, memcached, pods_of, send_commands, wait_until_ready
from support.olm import ABSENT, API, CATALOG, CATALOG_NAMESPACE, CHANNEL, SECONDS, Installation, Releases, csv_name
from support.waiting import READY

pytestmark = pytest.mark.modes

PAGES = ("install.md", "install-olm.md", "install-kubectl.md")
DOCUMENT = "".join((olm.ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
FIRST, SECOND = "0.1.0", "0.2.0"
"""The releases that docs/install-olm.md uses as examples."""
CRD = "memcacheds.cache.example.com"
CRDS = {
    f"customresourcedefinition.apiextensions.k8s.io/{name}"
    for name in (CRD, "memcachedproxies.cache.example.com", "appservices.app.example.com")
}
ROLES = {
    f"clusterrole.rbac.authorization.k8s.io/memcached-operator-{kind}-{role}-role"
    for kind in ("memcached", "memcachedproxy", "appservice")
    for role in ("admin", "editor", "viewer")
}
KUBECTL = "kubectl -n memcached-operator-system "
ROLLOUTS = [
    f"{KUBECTL}rollout status deployment/memcached-operator-{name} --timeout=5m"
    for name in ("controller-manager", "webhook")
]


@dataclass(frozen=True)
class Shell:
    """Runs commands of docs/install*.md in a directory that contains dist/install.yaml."""

    folder: Path

    def run(self, *commands: str, name: str = "") -> str:
        """Run commands of the document, with `name` instead of its install-abcde; return their output."""
        assert [each for each in commands if each not in DOCUMENT] == [], "the document does not contain these commands"
        script = "\n".join(commands).replace("install-abcde", name)
        words = ["bash", "-euc", script]
        done = programs.run(words, cwd=self.folder)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def remaining(self) -> set[str]:
        """The objects of dist/install.yaml that exist."""
        return set(kubectl("get", "--ignore-not-found", "-o", "name", "-f", str(self.file)).stdout.split())

    @property
    def file(self) -> Path:
        return self.folder / "dist/install.yaml"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell; everything installed in the meantime is removed afterwards."""
    rendered = kubectl("kustomize", str(olm.ROOT / "config/default")).stdout
    images = zip(("--image", "--agent-image"), (os.environ.get(name, "") for name in olm.IMAGES), strict=True)
    olm.tool("bundle", "installer", *map("=".join, images), f"--output={tmp_path}", stdin=rendered)
    found = Shell(tmp_path)
    try:
        yield found
    finally:
        kubectl("delete", "--ignore-not-found", f"--timeout={READY:g}s", "-f", str(found.file))
        eventually(lambda: not olm.configurations(), SECONDS, "OLM has deleted its webhook configurations")


def two_releases(releases: Releases) -> tuple[Path, Path]:
    """A release, and a second one whose CustomResourceDefinition has an additional field and whose pods never start."""
    first, second = releases.bundle(FIRST), releases.bundle(SECOND, replaces=FIRST, image=ABSENT)
    path = second / "bundle/manifests/cache.example.com_memcacheds.yaml"
    crd = yaml.safe_load(path.read_text(encoding="utf-8"))
    for version in crd["spec"]["versions"]:
        spec_fields(version)["added"] = {"type": "string"}
    path.write_text(yaml.safe_dump(crd), encoding="utf-8")
    return first, second


def spec_fields(version: Object) -> Object:
    """The schemas of the spec's fields in one version of a CustomResourceDefinition."""
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def defined(field: str) -> bool:
    """Whether all versions of the Memcached CRD define a field."""
    crd = kube.read(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}")
    assert crd is not None
    return all(field in spec_fields(version) for version in crd["spec"]["versions"])


def plan_for(plans: Sequence[Object], release: str) -> str:
    """The name of the InstallPlan that installs a release and waits for approval; empty if there is none.

    A plan without a status does not count: if it were approved before OLM writes its status, it would never get one.
    """
    for plan in plans:
        waits = plan.get("status", {}).get("phase") == "RequiresApproval"
        if waits and release in plan["spec"].get("clusterServiceVersionNames", []):
            return plan["metadata"]["name"]
    return ""


def approve(shell: Shell, version: str) -> None:
    """Approve the install plan of a release, and wait until it is complete: OLM never repeats a complete plan."""

    def plan() -> str:
        found = kube.read(f"{API}/v1alpha1/namespaces/{NAMESPACE}/installplans") or {}
        return plan_for(found.get("items", []), csv_name(version))

    name = eventually(plan, SECONDS, f"OLM has created an install plan for {version}")
    shell.run(page_commands("install-olm.md", "To choose when to upgrade, and to which release:\n"), name=name)


def install_with_olm(shell: Shell) -> Installation:
    """Install the first release with the objects of the document, and approve its install plan."""
    wanted = (f"startingCSV: {csv_name(FIRST)}", "installPlanApproval: Manual")
    assert all(f"  {each}" in DOCUMENT for each in wanted)
    kubectl("apply", "-f", "-", stdin=subscription(CATALOG, CATALOG_NAMESPACE, CHANNEL, *wanted))
    approve(shell, FIRST)
    found = Installation(NAMESPACE)
    found.succeeded(FIRST)
    return found


def assert_works(namespace: str, name: str) -> None:
    """Assert that a new cache gets its default image and its pods."""
    eventually(lambda: installed.admission_error() == "", SECONDS, "admission responds")
    kube.apply(memcached(namespace, name, resources=SMALL))
    assert wait_until_ready(namespace, name)["spec"]["image"]


def test_changing_the_method_does_not_affect_caches(
    shell: Shell, releases: Releases, namespace: str, other_namespace: str, audit: Audit
) -> None:
    releases.serve(*two_releases(releases))
    shell.run(page_commands("install-kubectl.md", "## With kubectl\n").removeprefix("make build-installer\n"))
    assert_works(namespace, "cache")
    (pod,) = pods_of(namespace)
    assert send_commands(pod["status"]["podIP"], 11211, b"set k 0 0 1", b"v").startswith(b"STORED")
    before, audit = children(namespace), Audit(audit.path)

    shell.run(page_commands("install-kubectl.md", "### Removing\n"))
    assert shell.remaining() == CRDS
    installation = install_with_olm(shell)
    assert_works(other_namespace, "by-olm")
    assert csv_name(FIRST) in shell.run(page_commands("install-olm.md", "  sourceNamespace: olm\n"))

    approve(shell, SECOND)
    eventually(lambda: installation.phase(SECOND) == "Installing", SECONDS, "the second release is being installed")
    assert defined("added"), "a complete plan must have applied the second release's CustomResourceDefinition"
    shell.run(page_commands("install-olm.md", "### Roll back\n"))
    install_with_olm(shell)
    assert not defined("added"), "a complete plan must have restored the first release's CustomResourceDefinition"
    assert installation.releases() == [csv_name(FIRST)]
    eventually(lambda: installed.admission_error() == "", SECONDS, "admission responds")

    shell.run(page_commands("install-olm.md", "### Remove\n"))
    eventually(
        lambda: shell.run(page_commands("install.md", "## Changing the installation method\n")) == "",
        SECONDS,
        "no object of OLM's installation remains",
    )
    shell.run(f"{KUBECTL}delete operatorgroup,lease memcached-operator --wait=false")
    assert shell.remaining() == {*CRDS, *ROLES, f"namespace/{NAMESPACE}"}
    shell.run("kubectl apply --server-side --force-conflicts -f dist/install.yaml", *ROLLOUTS)
    assert_works(other_namespace, "by-kubectl")

    assert children(namespace) == before
    assert not any(before["pods"].values())
    assert not audit.writes(namespace), "the change must not write anything"
    assert b"VALUE k 0 1" in send_commands(pod["status"]["podIP"], 11211, b"get k")
