"""The targets that put the operator into a cluster and take it out again; the last tests to disturb it."""

import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from support import certmanager, installed, kube
from support.audit import Audit
from support.install import left, make
from support.kube import eventually, kubectl, must_get
from support.memcached import IMAGE, SMALL, memcached, settled
from support.ports import free_port

CERTMANAGER = "OVERLAY=config/overlays/certmanager"
CRDS = [
    f"customresourcedefinition.apiextensions.k8s.io/{name}"
    for name in ("appservices.app.example.com", "memcacheds.cache.example.com")
]
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/memcacheds.cache.example.com"

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


# The order of the tests spares some of the undeploying and deploying that each of them asks for.
@pytest.fixture(scope="module", autouse=True)
def deployed_afterwards() -> Iterator[None]:
    """Whoever comes next finds the operator as it was."""
    yield
    make("deploy")


@pytest.fixture
def clean() -> None:
    """A cluster in which there is nothing of ours."""
    if left():
        make("undeploy")


def test_undeploy_leaves_nothing_and_can_be_run_twice(namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    settled(namespace)
    for _ in range(2):
        make("undeploy")
        assert left() == []
    assert kube.read(CRD) is None
    eventually(lambda: not kube.items("deployments", namespace), 30, "the children of the last object are gone")


@pytest.mark.usefixtures("clean")
def test_install_and_uninstall_can_each_be_run_twice() -> None:
    for _ in range(2):
        make("install")
    assert kubectl("get", "memcacheds", "-A").returncode == 0
    assert left() == CRDS
    for _ in range(2):
        make("uninstall")
    assert left() == []


@contextmanager
def controller_in_a_shell() -> Generator["subprocess.Popen[str]"]:
    """`make run`, ended as Ctrl-C does."""
    with subprocess.Popen(
        ["make", "run", f"METRICS_PORT={free_port()}", f"PROBES_PORT={free_port()}"],
        cwd=installed.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)


@pytest.mark.usefixtures("clean")
def test_the_controller_runs_from_a_shell_without_webhooks(namespace: str) -> None:
    make("install")
    with controller_in_a_shell() as process:
        kube.apply(memcached(namespace, size=2, resources=SMALL))
        assert settled(namespace)["status"]["readyReplicas"] == 2
        (container,) = must_get("deployments", namespace, "cache")["spec"]["template"]["spec"]["containers"]
        assert container["image"] == IMAGE
        os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert "Traceback" not in said
    assert left() == CRDS


@pytest.mark.usefixtures("clean")
def test_certmanager_can_be_the_source_of_the_certificate(namespace: str, audit: Audit) -> None:
    with certmanager.running():
        make("deploy", CERTMANAGER)
        assert "must be at least 1" in kube.refused(memcached(namespace, size=0))
        kube.apply(memcached(namespace, resources=SMALL))
        assert settled(namespace)["spec"]["image"] == IMAGE
        assert not any("manage-certificates" in word for word in arguments())
        assert may("get", f"secret/{installed.CERTIFICATE}") == "no"
        assert asked_for(audit) & {"secrets", "mutatingwebhookconfigurations"} == set()
        make("undeploy", CERTMANAGER)
    assert left() == []


def arguments() -> list[str]:
    """The controller's command line."""
    (container,) = must_get("deployments", installed.NAMESPACE, f"memcached-operator-{installed.CONTROLLER}")["spec"][
        "template"
    ]["spec"]["containers"]
    return container["args"]


def may(verb: str, what: str) -> str:
    """Whether the controller may do something in its own namespace."""
    account = f"system:serviceaccount:{installed.NAMESPACE}:memcached-operator-{installed.CONTROLLER}"
    return kubectl(
        "auth", "can-i", verb, what, f"--as={account}", "-n", installed.NAMESPACE, check=False
    ).stdout.strip()


def asked_for(audit: Audit) -> set[str]:
    """The resources that the operator's processes asked for."""
    return {
        request.get("objectRef", {}).get("resource", "")
        for request in audit.requests()
        if request["user"]["username"].startswith(f"system:serviceaccount:{installed.NAMESPACE}:")
    }


@pytest.mark.usefixtures("clean")
def test_deploy_warns_of_nothing_and_a_second_one_changes_nothing(namespace: str) -> None:
    first = make("deploy")
    assert "Warning" not in first.stdout + first.stderr
    kube.apply(memcached(namespace, resources=SMALL))
    settled(namespace)
    before = {pod["metadata"]["uid"] for pod in both()}
    make("deploy")
    assert {pod["metadata"]["uid"] for pod in both()} == before
    settled(namespace)


def both() -> list[kube.Object]:
    """The pods of both processes."""
    return [*installed.pods(installed.CONTROLLER), *installed.pods(installed.WEBHOOK)]


def test_the_operators_namespace_takes_restricted_pods_only() -> None:
    done = kubectl(
        "run", "privileged", "--image=any", "--privileged", "--dry-run=server", "-n", installed.NAMESPACE, check=False
    )
    assert 'violates PodSecurity "restricted:latest"' in done.stderr
