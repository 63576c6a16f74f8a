"""The bundle as OLM v1 renders it, with certificates as cert-manager issues them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support import certmanager, installed, kube, olm
from support.kube import eventually, kubectl
from support.memcached import SMALL, memcached, wait_until_ready
from support.olm import CONTROLLER, SECONDS, WEBHOOK, Installation
from support.waiting import READY

pytestmark = pytest.mark.modes


@pytest.fixture(scope="module")
def applied(current_bundle: Path) -> Iterator[Installation]:
    """The rendered bundle, applied; deleted afterwards."""
    with kube.temporary_namespace() as namespace, certmanager.running():
        text = olm.tool("olm", "render-v1", current_bundle / "bundle", namespace)
        try:
            kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
            for name in (CONTROLLER, WEBHOOK):
                kubectl("rollout", "status", "-n", namespace, f"deployment/{name}", f"--timeout={SECONDS}s")
            eventually(lambda: installed.admission_error() == "", SECONDS, "admission responds")
            yield Installation(namespace)
        finally:
            kubectl("delete", "--ignore-not-found", f"--timeout={READY:g}s", "-f", "-", stdin=text)


def test_admission_and_reconciling_work(applied: Installation, namespace: str) -> None:
    (pod, *_) = applied.pods(CONTROLLER)
    assert pod["metadata"]["annotations"]["olm.targetNamespaces"] == "", "all namespaces by default"
    assert "spec.size" in kube.rejection(memcached(namespace, size=0), verb="create")
    done = kubectl("create", "-f", "-", stdin=memcached(namespace, image="memcached:latest", resources=SMALL))
    assert "has no fixed version" in done.stderr, "our webhook must be called"
    kube.apply(memcached(namespace, "valid", resources=SMALL))
    assert wait_until_ready(namespace, "valid")["spec"]["image"]


def test_a_single_namespace_can_be_selected(current_bundle: Path) -> None:
    """OLM v1 supports this if the feature is enabled."""
    found = list(yaml.safe_load_all(olm.tool("olm", "render-v1", current_bundle / "bundle", "one", "one")))
    controller = next(each for each in found if each["metadata"]["name"] == CONTROLLER and each["kind"] == "Deployment")
    assert controller["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"] == "one"
    namespaces = {each["metadata"]["namespace"] for each in found if each["kind"] == "Role"}
    assert namespaces == {"one"}
