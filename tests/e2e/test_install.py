"""The Makefile targets that install and uninstall the operator."""

import os
import signal
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from project.page import OF_THE_DEMO
from support import installed, kube, programs
from support.kube import eventually, kubectl, must_get
from support.memcached import IMAGE, SMALL, memcached, wait_until_ready
from support.ports import free_port
from support.waiting import STEP


def make(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run a target; the message of a failure contains its output."""
    done = programs.run(["make", *words], cwd=installed.ROOT)
    assert done.returncode == 0, f"make {' '.join(words)}: {done.stdout}{done.stderr}"
    return done


def remaining() -> list[str]:
    """Our cluster-wide objects and the RoleBindings of all namespaces, by kind and name.

    The namespace of `make demo` is not ours: it is kept for the user to look at.
    """
    kinds = {obj["kind"] for obj in installed.rendered()}
    cluster_wide = {"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
    listed = ",".join(kinds & (cluster_wide | installed.CONFIGURATIONS.keys()))
    names = kubectl("get", listed, "-o", "name").stdout.split()
    names += kubectl("get", "rolebindings", "--all-namespaces", "-o", "name").stdout.split()
    names = [name for name in names if name != f"namespace/{OF_THE_DEMO}"]
    return [name for name in names if "memcached" in name or "appservice" in name]


CRDS = [
    f"customresourcedefinition.apiextensions.k8s.io/{name}"
    for name in ("appservices.app.example.com", "memcachedproxies.cache.example.com", "memcacheds.cache.example.com")
]
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/memcacheds.cache.example.com"

pytestmark = [pytest.mark.disruptive, pytest.mark.usefixtures("cluster")]


@pytest.fixture(autouse=True)
def deployed_afterwards() -> Iterator[None]:
    """Deploy the operator again if a test has failed."""
    yield
    if kube.get("deployments", installed.NAMESPACE, f"memcached-operator-{installed.CONTROLLER}") is None:
        make("deploy")


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


def test_every_way_to_install_can_be_repeated_and_undone(namespace: str) -> None:
    """In an order with few deployments: undeploy, run the controller in a shell, uninstall, deploy.

    tests/certmanager installs the overlay for cert-manager, and tests/olm mounts its Secrets into pods.
    """
    kube.apply(memcached(namespace, resources=SMALL))
    wait_until_ready(namespace)
    for _ in range(2):
        make("undeploy")
        assert remaining() == []
    assert kube.read(CRD) is None
    eventually(lambda: not kube.items("deployments", namespace), description="the last object's children are deleted")
    for _ in range(2):
        make("install")
    assert remaining() == CRDS
    assert_make_run_works_without_webhooks(namespace)
    for _ in range(2):
        make("uninstall")
    assert remaining() == []
    first = make("deploy")
    assert "Warning" not in first.stdout + first.stderr
    kube.apply(memcached(namespace, "deployed", resources=SMALL))
    wait_until_ready(namespace, "deployed")
    before = {pod["metadata"]["uid"] for pod in operator_pods()}
    make("deploy")
    assert {pod["metadata"]["uid"] for pod in operator_pods()} == before, "the second one changes nothing"


def assert_make_run_works_without_webhooks(namespace: str) -> None:
    """Run the controller in a shell, with the CRDs only, and stop it with Ctrl-C."""
    with controller_in_a_shell() as process:
        kube.apply(memcached(namespace, "shell", size=2, resources=SMALL))
        assert wait_until_ready(namespace, "shell")["status"]["readyReplicas"] == 2
        (container,) = must_get("deployments", namespace, "shell")["spec"]["template"]["spec"]["containers"]
        assert container["image"] == IMAGE
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=STEP)
    assert "Traceback" not in output
    assert remaining() == CRDS


def operator_pods() -> list[kube.Object]:
    """The pods of both processes."""
    return [*installed.pods(installed.CONTROLLER), *installed.pods(installed.WEBHOOK)]


def test_the_operators_namespace_accepts_only_restricted_pods() -> None:
    done = kubectl(
        "run", "privileged", "--image=any", "--privileged", "--dry-run=server", "-n", installed.NAMESPACE, check=False
    )
    assert 'violates PodSecurity "restricted:latest"' in done.stderr
