"""The Makefile targets that install and uninstall the operator."""

import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from support import certmanager, installed, kube
from support.audit import Audit
from support.install import make, remaining
from support.kube import eventually, kubectl, must_get
from support.memcached import IMAGE, SMALL, memcached, wait_until_ready
from support.ports import free_port

CERTMANAGER = "OVERLAY=config/overlays/certmanager"
CRDS = [
    f"customresourcedefinition.apiextensions.k8s.io/{name}"
    for name in ("appservices.app.example.com", "memcacheds.cache.example.com")
]
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/memcacheds.cache.example.com"

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


# The order of the tests reduces the number of deployments.
@pytest.fixture(scope="module", autouse=True)
def deployed_afterwards() -> Iterator[None]:
    """Deploy the operator again after the last test."""
    yield
    make("deploy")


@pytest.fixture
def clean() -> None:
    """A cluster without any object of ours."""
    if remaining():
        make("undeploy")


def test_undeploy_removes_everything_and_can_be_repeated(namespace: str) -> None:
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    for _ in range(2):
        make("undeploy")
        assert remaining() == []
    assert kube.read(CRD) is None
    eventually(lambda: not kube.items("deployments", namespace), 30, "the children of the last object are deleted")


@pytest.mark.usefixtures("clean")
def test_install_and_uninstall_can_be_repeated() -> None:
    for _ in range(2):
        make("install")
    assert kubectl("get", "memcacheds", "-A").returncode == 0
    assert remaining() == CRDS
    for _ in range(2):
        make("uninstall")
    assert remaining() == []


@contextmanager
def controller_in_a_shell() -> Generator["subprocess.Popen[str]"]:
    """`make run`, stopped with SIGINT as by Ctrl-C."""
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
def test_make_run_works_without_webhooks(namespace: str) -> None:
    make("install")
    with controller_in_a_shell() as process:
        kube.apply(memcached(namespace, size=2, resources=SMALL))
        assert wait_until_ready(namespace)["status"]["readyReplicas"] == 2
        (container,) = must_get("deployments", namespace, "cache")["spec"]["template"]["spec"]["containers"]
        assert container["image"] == IMAGE
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert "Traceback" not in output
    assert remaining() == CRDS


@pytest.mark.usefixtures("clean")
def test_cert_manager_can_issue_the_certificate(namespace: str, audit: Audit) -> None:
    with certmanager.running():
        make("deploy", CERTMANAGER)
        assert "must be at least 1" in kube.rejection(memcached(namespace, size=0))
        kube.apply(memcached(namespace, resources=SMALL))
        assert wait_until_ready(namespace)["spec"]["image"] == IMAGE
        assert not any("manage-certificates" in argument for argument in arguments())
        assert can("get", f"secret/{installed.CERTIFICATE}") == "no"
        assert requested_resources(audit) & {"secrets", "mutatingwebhookconfigurations"} == set()
        make("undeploy", CERTMANAGER)
    assert remaining() == []


def arguments() -> list[str]:
    """The controller's command line."""
    (container,) = must_get("deployments", installed.NAMESPACE, f"memcached-operator-{installed.CONTROLLER}")["spec"][
        "template"
    ]["spec"]["containers"]
    return container["args"]


def can(verb: str, what: str) -> str:
    """Whether RBAC allows a request of the controller in its own namespace: yes or no."""
    account = f"system:serviceaccount:{installed.NAMESPACE}:memcached-operator-{installed.CONTROLLER}"
    return kubectl(
        "auth", "can-i", verb, what, f"--as={account}", "-n", installed.NAMESPACE, check=False
    ).stdout.strip()


def requested_resources(audit: Audit) -> set[str]:
    """The resources that the operator's processes requested."""
    return {
        request.get("objectRef", {}).get("resource", "")
        for request in audit.requests()
        if request["user"]["username"].startswith(f"system:serviceaccount:{installed.NAMESPACE}:")
    }


@pytest.mark.usefixtures("clean")
def test_deploy_has_no_warnings_and_a_second_one_changes_nothing(namespace: str) -> None:
    first = make("deploy")
    assert "Warning" not in first.stdout + first.stderr
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    before = {pod["metadata"]["uid"] for pod in operator_pods()}
    make("deploy")
    assert {pod["metadata"]["uid"] for pod in operator_pods()} == before
    wait_until_ready(namespace)


def operator_pods() -> list[kube.Object]:
    """The pods of both processes."""
    return [*installed.pods(installed.CONTROLLER), *installed.pods(installed.WEBHOOK)]


def test_the_operators_namespace_accepts_only_restricted_pods() -> None:
    done = kubectl(
        "run", "privileged", "--image=any", "--privileged", "--dry-run=server", "-n", installed.NAMESPACE, check=False
    )
    assert 'violates PodSecurity "restricted:latest"' in done.stderr
