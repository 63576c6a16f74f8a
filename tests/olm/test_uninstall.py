"""Objects of users survive uninstalling and stay usable; after reinstalling, the operator manages them unchanged."""

from pathlib import Path

import pytest

from support import kube, olm
from support.audit import Audit
from support.kube import eventually, kubectl
from support.memcached import SMALL, children, memcached, pods_of, wait_until_ready
from support.olm import VERSION, Releases
from support.waiting import QUIET, READY

pytestmark = pytest.mark.modes

CASCADES = ("background", "foreground", "orphan")


def delete(namespace: str, cascade: str) -> None:
    """Delete an object with one cascading strategy while the operator is not installed."""
    name = f"by-{cascade}"
    kubectl("delete", "memcached", name, "-n", namespace, f"--cascade={cascade}", f"--timeout={READY:g}s")
    kept = cascade == "orphan"
    eventually(lambda: bool(kube.get("deployments", namespace, name)) == kept, READY, f"{name}: the Deployment")
    eventually(lambda: bool(pods_of(namespace, name)) == kept, READY, f"{name}: the pods")


def test_objects_survive_uninstalling_and_reinstalling(
    releases: Releases, current_bundle: Path, namespace: str, other_namespace: str, audit: Audit
) -> None:
    releases.serve(current_bundle)
    with olm.subscribed() as installation:
        installation.succeeded(VERSION)
        for name in ("one", "two"):
            kube.apply(memcached(namespace, name, resources=SMALL))
        for name in ("edited", *(f"by-{cascade}" for cascade in CASCADES)):
            kube.apply(memcached(other_namespace, name, resources=SMALL))
        for name in ("one", "two"):
            wait_until_ready(namespace, name)
        for name in ("edited", *(f"by-{cascade}" for cascade in CASCADES)):
            wait_until_ready(other_namespace, name)
        before = children(namespace)
        assert len(before["pods"]) == 2
        assert not any(before["pods"].values())

        installation.remove()
        assert children(namespace) == before, "uninstalling must not change the children"
        assert olm.configurations() == [], "no webhook configuration may remain"
        kubectl("patch", "memcached", "edited", "-n", other_namespace, "--type=merge", "-p", '{"spec": {"size": 2}}')
        for cascade in CASCADES:
            delete(other_namespace, cascade)

        reinstalled = Audit(audit.path)
        installation.subscribe()
        installation.succeeded(VERSION)
        assert wait_until_ready(other_namespace, "edited")["status"]["readyReplicas"] == 2
        reinstalled.wait_until_quiet(2 * QUIET)
        assert reinstalled.writes(other_namespace), "the changed objects must be reconciled"
        assert not reinstalled.writes(namespace), "unchanged objects must not be written"
        assert children(namespace) == before, "reinstalling must not change the children"
