"""Uninstalled: what users own stays and can be used; installed again, the operator takes it up without touching it."""

from pathlib import Path

from support import kube, olm
from support.audit import Audit
from support.kube import eventually, kubectl
from support.memcached import SMALL, children, memcached, pods_of, settled
from support.olm import VERSION, Releases

WAYS = ("background", "foreground", "orphan")
GONE = 30
"""Seconds until the garbage collector has done its work."""
QUIET = 5
"""Seconds without a write after which nothing more is expected: the operator has looked at everything by then."""


def deleted(namespace: str, way: str) -> None:
    """Delete an object in one of the ways there are, with the operator away."""
    name = f"by-{way}"
    kubectl("delete", "memcached", name, "-n", namespace, f"--cascade={way}", "--timeout=60s")
    left = way == "orphan"
    eventually(lambda: bool(kube.get("deployments", namespace, name)) == left, GONE, f"{name}: the Deployment")
    eventually(lambda: bool(pods_of(namespace, name)) == left, GONE, f"{name}: the pods")


def test_what_is_left_when_the_operator_goes_and_comes_back(
    releases: Releases, first: Path, namespace: str, other: str, audit: Audit
) -> None:
    releases.serve(first)
    with olm.subscribed() as installation:
        installation.succeeded(VERSION)
        for name in ("one", "two"):
            kube.apply(memcached(namespace, name, resources=SMALL))
        for name in ("edited", *(f"by-{way}" for way in WAYS)):
            kube.apply(memcached(other, name, resources=SMALL))
        for name in ("one", "two"):
            settled(namespace, name)
        for name in ("edited", *(f"by-{way}" for way in WAYS)):
            settled(other, name)
        before = children(namespace)
        assert len(before["pods"]) == 2
        assert not any(before["pods"].values())

        installation.remove()
        assert children(namespace) == before, "nobody takes away what serves"
        assert olm.configurations() == [], "nobody is asked who is not there"
        kubectl("patch", "memcached", "edited", "-n", other, "--type=merge", "-p", '{"spec": {"size": 2}}')
        for way in WAYS:
            deleted(other, way)

        came_back = Audit(audit.path)
        installation.subscribe()
        installation.succeeded(VERSION)
        assert settled(other, "edited")["status"]["readyReplicas"] == 2
        came_back.quiet(QUIET)
        assert came_back.writes(other), "what did need it was written"
        assert not came_back.writes(namespace), "nothing needed a write"
        assert children(namespace) == before, "nothing was restarted"
