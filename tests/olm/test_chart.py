"""Changing an installation with running caches from kubectl to Helm, to OLM and back, with the commands of the docs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bundle.subscription import NAMESPACE, subscription
from support import installed, kube, olm, programs
from support.audit import Audit
from support.code_blocks import page_commands
from support.helm import Helm, helm
from support.kube import eventually, kubectl
from support.memcached import SMALL, children, memcached, pods_of, send_commands, wait_until_ready
from support.olm import CATALOG, CATALOG_NAMESPACE, CHANNEL, SECONDS, VERSION, Installation, Releases
from support.waiting import READY

pytestmark = pytest.mark.modes

PORT = 11211
LEASE = f"kubectl -n {NAMESPACE} delete operatorgroup,lease memcached-operator --wait=false"


@dataclass(frozen=True)
class Shell:
    """Runs the commands of the docs in a directory with charts/ and dist/install.yaml, both with the tested images."""

    folder: Path
    helm: Helm

    def run(self, script: str) -> str:
        """Run a script and return its output; an error fails the test."""
        environ = {**os.environ, "PATH": os.pathsep.join([str(self.helm.folder), os.environ["PATH"]])}
        words = ["bash", "-euo", "pipefail", "-c", script]
        done = programs.run(words, cwd=self.folder, env=environ)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def follow(self, script: str, *more: str) -> str:
        """Run commands of a page, the last one with further options."""
        return self.run(" ".join([script.rstrip(), *more]))


@pytest.fixture(params=["helm-3", "helm-4"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """A shell with each Helm; everything that was installed in the meantime is removed afterwards."""
    program = tmp_path / "bin"
    program.mkdir()
    options = [
        f"{option}={os.environ.get(name, '')}"
        for option, name in zip(("--image", "--agent-image"), olm.IMAGES, strict=True)
    ]
    olm.tool("chart", "generate", f"--output={tmp_path}", *options)
    rendered = kubectl("kustomize", str(olm.ROOT / "config/default")).stdout
    olm.tool("bundle", "installer", f"--output={tmp_path}", *options, stdin=rendered)
    found = Shell(tmp_path, helm(request.param, program))
    try:
        yield found
    finally:
        kubectl("delete", "--ignore-not-found", f"--timeout={READY:g}s", "-f", str(tmp_path / "dist/install.yaml"))
        eventually(lambda: not olm.configurations(), SECONDS, "all webhook configurations are deleted")


def operator_pods() -> set[str]:
    """The uids of the operator's own pods."""
    components = (installed.CONTROLLER, installed.WEBHOOK)
    return {pod["metadata"]["uid"] for component in components for pod in installed.pods(component)}


def assert_works(namespace: str, name: str) -> None:
    """Assert that a new cache gets its default image and its pods."""
    eventually(lambda: installed.admission_error() == "", SECONDS, "admission responds")
    kube.apply(memcached(namespace, name, resources=SMALL))
    assert wait_until_ready(namespace, name)["spec"]["image"]


@pytest.mark.long(240)
def test_changing_to_helm_and_olm_and_back_does_not_affect_caches(
    shell: Shell, releases: Releases, current_bundle: Path, namespace: str, other_namespace: str, audit: Audit
) -> None:
    releases.serve(current_bundle)
    merge = ["--server-side=false"] if shell.helm.name == "helm-4" else []
    shell.run("kubectl apply --server-side -f dist/install.yaml")
    installed.wait_until_up()
    assert_works(namespace, "cache")
    (pod,) = pods_of(namespace)
    assert send_commands(pod["status"]["podIP"], PORT, b"set k 0 0 1", b"v").startswith(b"STORED")
    before, audit = children(namespace), Audit(audit.path)

    operator = operator_pods()
    shell.follow(page_commands("helm.md", "### From kubectl to Helm\n"), "--wait", *merge)
    assert operator_pods() == operator, "the objects are equal, so the operator's pods stay, too"
    assert_works(other_namespace, "by-helm")
    shell.follow(page_commands("helm.md", "## Upgrading\n"), "--set logLevel=debug")
    installed.wait_until_up()
    assert not operator_pods() & operator

    shell.follow(page_commands("helm.md", "## Uninstalling\n"))
    installation = Installation(NAMESPACE)
    kubectl("apply", "-f", "-", stdin=subscription(CATALOG, CATALOG_NAMESPACE, CHANNEL))
    installation.succeeded(VERSION)
    assert_works(other_namespace, "by-olm")

    shell.follow(page_commands("install-olm.md", "### Remove\n"))
    eventually(
        lambda: shell.follow(page_commands("install.md", "## Changing the installation method\n")) == "",
        SECONDS,
        "no object of OLM's installation remains",
    )
    shell.run(LEASE)
    shell.follow(page_commands("helm.md", "### From kubectl to Helm\n"), "--wait", *merge)
    assert_works(other_namespace, "by-helm-again")

    operator = operator_pods()
    shell.follow(page_commands("helm.md", "### From Helm to kubectl\n"))
    installed.wait_until_up()
    assert operator_pods() == operator
    assert_works(other_namespace, "by-kubectl")

    assert children(namespace) == before
    assert not any(before["pods"].values())
    assert not audit.writes(namespace), "the changes must not write anything"
    assert b"VALUE k 0 1" in send_commands(pod["status"]["podIP"], PORT, b"get k")
