"""From one way of installing to another, and back to an earlier release, by the very commands of docs/install.md."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from bundle.subscription import NAMESPACE, subscription
from demo.olm.objects import plan_for
from support import installed, kube, olm
from support.audit import Audit
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, children, memcached, pods_of, settled, talk
from support.olm import ABSENT, API, CATALOG, CATALOG_NAMESPACE, CHANNEL, SECONDS, Installation, Releases, csv_name

DOCUMENT = (olm.ROOT / "docs/install.md").read_text(encoding="utf-8")
FIRST, SECOND = "0.1.0", "0.2.0"
"""The releases of the document."""
CRD = "memcacheds.cache.example.com"
CRDS = {f"customresourcedefinition.apiextensions.k8s.io/{name}" for name in (CRD, "appservices.app.example.com")}
ROLES = {
    f"clusterrole.rbac.authorization.k8s.io/memcached-operator-{kind}-{who}-role"
    for kind in ("memcached", "appservice")
    for who in ("admin", "editor", "viewer")
}
HERE = "kubectl -n memcached-operator-system "
INSTALLED = [f"{HERE}rollout status deployment/memcached-operator-{name}" for name in ("controller-manager", "webhook")]


@dataclass(frozen=True)
class Shell:
    """Somebody who reads docs/install.md, in a directory in which there is dist/install.yaml."""

    folder: Path

    def run(self, *commands: str, name: str = "") -> str:
        """Type commands that the document has, with `name` in place of its install-abcde; what they print."""
        assert [each for each in commands if each not in DOCUMENT] == [], "the document says something else"
        script = "\n".join(commands).replace("install-abcde", name)
        words = ["bash", "-euc", script]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, passage: str) -> str:
        """Type the first commands that stand below some words of the document; what they print."""
        (_, text) = DOCUMENT.split(passage)
        return self.run(text.split("```sh\n")[1].split("```")[0])

    def left(self) -> set[str]:
        """What there is of the objects of dist/install.yaml."""
        return set(kubectl("get", "--ignore-not-found", "-o", "name", "-f", str(self.file)).stdout.split())

    @property
    def file(self) -> Path:
        return self.folder / "dist/install.yaml"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Everything that is installed meanwhile goes afterwards."""
    rendered = kubectl("kustomize", str(olm.ROOT / "config/default")).stdout
    image = os.environ.get("IMG", "")
    olm.tool("bundle", "installer", f"--image={image}", f"--output={tmp_path}", stdin=rendered)
    found = Shell(tmp_path)
    try:
        yield found
    finally:
        kubectl("delete", "--ignore-not-found", "--timeout=90s", "-f", str(found.file))
        eventually(lambda: not olm.configurations(), SECONDS, "OLM has taken its webhook configurations away")


def both(releases: Releases) -> tuple[Path, Path]:
    """A release, and one whose CustomResourceDefinition has a field more and whose pods never start."""
    first, second = releases.bundle(FIRST), releases.bundle(SECOND, replaces=FIRST, image=ABSENT)
    path = second / "bundle/manifests/cache.example.com_memcacheds.yaml"
    crd = yaml.safe_load(path.read_text(encoding="utf-8"))
    for version in crd["spec"]["versions"]:
        fields(version)["later"] = {"type": "string"}
    path.write_text(yaml.safe_dump(crd), encoding="utf-8")
    return first, second


def fields(version: Object) -> Object:
    """The fields of the spec in a version of a CustomResourceDefinition."""
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


def defined(field: str) -> bool:
    """Whether the API server knows a field of Memcacheds."""
    crd = kube.read(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}")
    assert crd is not None
    return all(field in fields(version) for version in crd["spec"]["versions"])


def approve(shell: Shell, version: str) -> None:
    """Approve the plan of a release when OLM has made it."""

    def plan() -> str:
        found = kube.read(f"{API}/v1alpha1/namespaces/{NAMESPACE}/installplans") or {}
        return plan_for(found.get("items", []), csv_name(version))

    name = eventually(plan, SECONDS, f"a plan for {version}")
    approval = """installplan install-abcde --type merge -p '{"spec":{"approved":true}}'"""
    shell.run(f"{HERE}patch {approval}", name=name)


def by_olm(shell: Shell) -> Installation:
    """Apply the objects of the document, starting at the first release, and approve that."""
    wanted = (f"startingCSV: {csv_name(FIRST)}", "installPlanApproval: Manual")
    assert all(f"  {each}" in DOCUMENT for each in wanted)
    kubectl("apply", "-f", "-", stdin=subscription(CATALOG, CATALOG_NAMESPACE, CHANNEL, *wanted))
    approve(shell, FIRST)
    found = Installation(NAMESPACE)
    found.succeeded(FIRST)
    return found


def works(namespace: str, name: str) -> None:
    """A new cache gets its default and its pods."""
    eventually(lambda: installed.complaint() == "", SECONDS, "admission answers")
    kube.apply(memcached(namespace, name, resources=SMALL))
    assert settled(namespace, name)["spec"]["image"]


def test_a_cache_notices_no_change_of_the_way(
    shell: Shell, releases: Releases, namespace: str, other: str, audit: Audit
) -> None:
    releases.serve(*both(releases))
    shell.run("kubectl apply --server-side -f dist/install.yaml", *INSTALLED)
    works(namespace, "cache")
    (pod,) = pods_of(namespace)
    assert talk(pod["status"]["podIP"], 11211, b"set k 0 0 1", b"v").startswith(b"STORED")
    before, audit = children(namespace), Audit(audit.path)

    shell.follow("### Removing\n")
    assert shell.left() == CRDS
    installation = by_olm(shell)
    works(other, "by-olm")

    approve(shell, SECOND)
    eventually(lambda: installation.phase(SECOND) == "Installing", SECONDS, "it is installed, and never ready")
    eventually(lambda: defined("later"), SECONDS, "OLM has written the CustomResourceDefinition of the second release")
    shell.follow("**Going back.**")
    by_olm(shell)
    eventually(lambda: not defined("later"), SECONDS, "OLM has written that of the first release again")
    assert installation.releases() == [csv_name(FIRST)]
    eventually(lambda: installed.complaint() == "", SECONDS, "admission answers")

    shell.follow("**Removing.**\n")
    eventually(lambda: shell.follow("## Changing from one way to another\n") == "", SECONDS, "nothing of OLM's is left")
    shell.run(f"{HERE}delete operatorgroup,lease memcached-operator")
    assert shell.left() == {*CRDS, *ROLES, f"namespace/{NAMESPACE}"}
    shell.run("kubectl apply --server-side --force-conflicts -f dist/install.yaml", *INSTALLED)
    works(other, "by-kubectl")

    assert children(namespace) == before
    assert not any(before["pods"].values())
    assert not audit.writes(namespace), "nothing needed a write"
    assert b"VALUE k 0 1" in talk(pod["status"]["podIP"], 11211, b"get k")
