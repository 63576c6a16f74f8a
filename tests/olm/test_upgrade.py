"""From release to release: no cache notices, and a release that never starts takes nothing away."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import installed, kube, olm
from support.audit import Audit
from support.kube import Object, eventually, kubectl
from support.memcached import SMALL, memcached, pods_of, settled, talk
from support.olm import ABSENT, SECONDS, Installation, Releases
from support.watching import Record, asking

CACHES = 20
VALUE = b"VALUE k 0 1\r\nv\r\n"
QUIET = 10
"""Seconds for which the release from before is watched at work beside the one that does not start."""
SILENCE = 5
"""Seconds without an answer of admission that are put up with where none of its pods is replaced: for one call."""
WINDOW = 30
"""The same where OLM replaces the pods, and with them the certificate."""


@contextmanager
def at(releases: Releases, *bundles: Path, version: str) -> Generator[Installation]:
    """The newest release of a catalogue, installed for all namespaces."""
    releases.serve(*bundles)
    with olm.subscribed() as installation:
        installation.succeeded(version)
        yield installation


def identities(pods: list[Object]) -> dict[str, int]:
    """The pods by their uids, and how often each was restarted."""
    return {
        pod["metadata"]["uid"]: sum(each["restartCount"] for each in pod["status"]["containerStatuses"]) for pod in pods
    }


def caches(namespace: str) -> list[Object]:
    """The pods of every cache."""
    return [pod for number in range(CACHES) for pod in pods_of(namespace, f"cache-{number}")]


def unread(addresses: list[str]) -> str:
    """Read a value from every cache; which of them did not have it."""
    for address in addresses:
        try:
            if not talk(address, 11211, b"get k").startswith(VALUE):
                return f"{address} has lost the value"
        except OSError as error:
            return f"{address}: {error}"
    return ""


@pytest.fixture
def other() -> Iterator[str]:
    """A namespace for what is made after the upgrade."""
    with kube.own_namespace() as name:
        yield name


def generations() -> str:
    """The releases whose webhook configurations are there now."""
    return " ".join(sorted({each["metadata"]["labels"]["olm.owner"] for each in olm.configurations()}))


def test_no_cache_notices_an_upgrade(
    releases: Releases, first: Path, namespace: str, other: str, audit: Audit, record_property: Record
) -> None:
    second = releases.bundle("0.2.0", replaces="0.1.0")
    with at(releases, first, version="0.1.0") as installation:
        objects = [memcached(namespace, f"cache-{number}", resources=SMALL) for number in range(CACHES)]
        kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})
        for number in range(CACHES):
            settled(namespace, f"cache-{number}")
        before = identities(caches(namespace))
        addresses = [pod["status"]["podIP"] for pod in caches(namespace)]
        for address in addresses:
            assert talk(address, 11211, b"set k 0 0 1", b"v").startswith(b"STORED")
        audit = Audit(audit.path)
        with (
            asking(lambda: unread(addresses)) as reads,
            asking(lambda: installed.complaint(namespace)) as admission,
            asking(generations) as coexisting,
        ):
            releases.serve(first, second)
            installation.succeeded("0.2.0")
            eventually(lambda: installation.releases() == [olm.csv_name("0.2.0")], SECONDS, "the one before is gone")
            kube.apply(memcached(other, resources=SMALL))
            settled(other)
            longest = admission.longest_silence()
        record_property("longest silence of admission, in seconds", round(longest, 1))
        assert longest < WINDOW
        assert reads.good
        assert reads.bad == []
        assert identities(caches(namespace)) == before
        assert sum(before.values()) == 0
        assert f"{olm.csv_name('0.1.0')} {olm.csv_name('0.2.0')}" in {said for _, said in coexisting.bad}
        assert generations() == olm.csv_name("0.2.0")
        assert not audit.writes(namespace), "nothing needed a write"


def test_skipped_releases_are_never_installed(releases: Releases, first: Path) -> None:
    bad = releases.bundle("0.2.0", replaces="0.1.0", image=ABSENT)
    third = releases.bundle("0.3.0", replaces="0.1.0", skips="0.2.0")
    fifth = releases.bundle("0.5.0", skip_range=">=0.1.0 <0.5.0")
    with at(releases, first, version="0.1.0") as installation, asking(lambda: seen(installation)) as found:
        releases.serve(first, bad, third)
        installation.succeeded("0.3.0")
        releases.serve(fifth)
        installation.succeeded("0.5.0")
        eventually(lambda: installation.releases() == [olm.csv_name("0.5.0")], SECONDS, "the others are gone")
    assert olm.csv_name("0.2.0") not in " ".join(said for _, said in found.bad)
    assert olm.csv_name("0.3.0") in " ".join(said for _, said in found.bad)


def seen(installation: Installation) -> str:
    """The releases that are there now."""
    return " ".join(installation.releases())


def test_a_release_that_never_starts_takes_nothing_away(releases: Releases, first: Path, namespace: str) -> None:
    broken = releases.bundle("0.2.0", replaces="0.1.0", image=ABSENT)
    with at(releases, first, version="0.1.0") as installation:
        before = {name: identities(installation.pods(name)) for name in (olm.CONTROLLER, olm.WEBHOOK)}
        with asking(lambda: installed.complaint(namespace)) as admission:
            releases.serve(first, broken)
            for name in before:
                eventually(lambda name=name: waiting(installation.pods(name)), SECONDS, f"{name} has no image")
            kube.apply(memcached(namespace, resources=SMALL))
            settled(namespace)
            eventually(lambda: admission.steady() > QUIET, SECONDS, "admission answers")
            longest = admission.longest_silence()
        assert longest < SILENCE
        assert installation.phase("0.2.0") == "Installing"
        assert installation.phase("0.1.0") == "Replacing"
        for name, pods in before.items():
            assert pods.items() <= running(installation.pods(name)).items(), f"{name} goes on as it was"


def running(pods: list[Object]) -> dict[str, int]:
    """Those that are ready."""
    return identities([pod for pod in pods if ready(pod)])


def ready(pod: Object) -> bool:
    """Whether a pod is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def waiting(pods: list[Object]) -> bool:
    """Whether one of the pods waits for an image that does not come."""
    reasons = {
        each.get("state", {}).get("waiting", {}).get("reason")
        for pod in pods
        for each in pod["status"].get("containerStatuses", ())
    }
    return bool(reasons & {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"})


pytestmark = pytest.mark.usefixtures("cluster")
