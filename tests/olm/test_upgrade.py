"""From release to release: no cache notices, and a release that never starts takes nothing away."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import kube, olm, serving
from support.audit import Audit
from support.kube import Object, eventually, identities, kubectl, ready
from support.memcached import IMAGE, OTHER_IMAGE, SMALL, memcached, pods_of, settled, talk
from support.olm import ABSENT, SECONDS, VERSION, Installation, Releases, csv_name, later
from support.serving import WINDOW
from support.watching import Record, asking

CACHES = 20
VALUE = b"VALUE k 0 1\r\nv\r\n"
QUIET = 10
"""Seconds for which the release from before is watched at work beside the one that does not start."""
CALM = 3
"""Seconds without a write after which nothing more is expected: the new release has looked at everything by then."""
SILENCE = 5
"""Seconds without an answer of admission that are put up with where none of its pods is replaced: for one call."""


@contextmanager
def at(releases: Releases, *bundles: Path, version: str) -> Generator[Installation]:
    """The newest release of a catalogue, installed for all namespaces."""
    releases.serve(*bundles)
    with olm.subscribed() as installation:
        installation.succeeded(version)
        yield installation


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


def generations() -> str:
    """The releases whose webhook configurations are there now."""
    return " ".join(sorted({each["metadata"]["labels"]["olm.owner"] for each in olm.configurations()}))


def test_no_cache_notices_an_upgrade(
    releases: Releases, first: Path, namespace: str, other: str, audit: Audit, record_property: Record
) -> None:
    """Not even of one that brings another image for new caches: the likeliest cause of a restart.

    OLM deletes the certificate with the release that it was made for, and makes another one: that is part of it.
    """
    second = releases.bundle(later(1), replaces=VERSION, memcached=OTHER_IMAGE)
    with at(releases, first, version=VERSION) as installation:
        addresses = filled(namespace)
        before, certificate = identities(caches(namespace)), serving.files(installation)["tls.crt"]
        audit = Audit(audit.path)
        with (
            asking(lambda: unread(addresses)) as reads,
            serving.asked(installation, namespace, WINDOW, record_property) as admission,
            asking(generations) as coexisting,
        ):
            releases.serve(first, second)
            installation.succeeded(later(1))
            eventually(lambda: installation.releases() == [csv_name(later(1))], SECONDS, "the one before is gone")
            serving.rotated(installation, certificate, admission)
            # A pod that ends answers on for seconds, with the image of its own release.
            eventually(lambda: installation.at_work(olm.WEBHOOK) == {csv_name(later(1))}, SECONDS, "so are its pods")
            kube.apply(memcached(other, resources=SMALL))
            assert settled(other)["spec"]["image"] == OTHER_IMAGE, "a new cache has the new release's image"
            audit.quiet(CALM)
        record_property(f"times that all of {CACHES} caches were read", len(reads.good))
        assert reads.good
        assert reads.bad == []
        assert identities(caches(namespace)) == before
        assert sum(before.values()) == 0
        assert {image(pod) for pod in caches(namespace)} == {IMAGE}
        assert {image(pod) for pod in pods_of(other)} == {OTHER_IMAGE}
        assert f"{csv_name(VERSION)} {csv_name(later(1))}" in {said for _, said in coexisting.bad}
        assert generations() == csv_name(later(1))
        assert audit.writes(other), "what did need it was written"
        assert not audit.writes(namespace), "nothing needed a write"


def filled(namespace: str) -> list[str]:
    """Make the caches and put a value into each; their addresses."""
    objects = [memcached(namespace, f"cache-{number}", resources=SMALL) for number in range(CACHES)]
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})
    for number in range(CACHES):
        settled(namespace, f"cache-{number}")
    addresses = [pod["status"]["podIP"] for pod in caches(namespace)]
    assert len(addresses) == CACHES
    for address in addresses:
        assert talk(address, 11211, b"set k 0 0 1", b"v").startswith(b"STORED")
    return addresses


def image(pod: Object) -> str:
    """The image that a pod of a cache runs."""
    (container,) = pod["spec"]["containers"]
    return container["image"]


def test_skipped_releases_are_never_installed(releases: Releases, first: Path) -> None:
    bad = releases.bundle(later(1), replaces=VERSION, image=ABSENT)
    third = releases.bundle(later(2), replaces=VERSION, skips=later(1))
    fifth = releases.bundle(later(4), skip_range=f">={VERSION} <{later(4)}")
    with at(releases, first, version=VERSION) as installation, asking(lambda: seen(installation)) as found:
        releases.serve(first, bad, third)
        installation.succeeded(later(2))
        releases.serve(fifth)
        installation.succeeded(later(4))
        eventually(lambda: installation.releases() == [csv_name(later(4))], SECONDS, "the others are gone")
    assert csv_name(later(1)) not in " ".join(said for _, said in found.bad)
    assert csv_name(later(2)) in " ".join(said for _, said in found.bad)


def seen(installation: Installation) -> str:
    """The releases that are there now."""
    return " ".join(installation.releases())


def test_a_release_that_never_starts_takes_nothing_away(
    releases: Releases, first: Path, namespace: str, record_property: Record
) -> None:
    broken = releases.bundle(later(1), replaces=VERSION, image=ABSENT)
    with at(releases, first, version=VERSION) as installation:
        before = {name: identities(installation.pods(name)) for name in (olm.CONTROLLER, olm.WEBHOOK)}
        with asking(lambda: serving.answer(namespace)) as admission:
            releases.serve(first, broken)
            for name in before:
                eventually(lambda name=name: waiting(installation.pods(name)), SECONDS, f"{name} has no image")
            kube.apply(memcached(namespace, resources=SMALL))
            settled(namespace)
            eventually(lambda: admission.steady() > QUIET, SECONDS, "admission answers")
            longest = admission.longest_silence()
        record_property("longest silence of admission, in seconds", round(longest, 1))
        assert longest < SILENCE
        assert installation.phase(later(1)) == "Installing"
        assert installation.phase(VERSION) == "Replacing"
        for name, pods in before.items():
            assert pods.items() <= running(installation.pods(name)).items(), f"{name} goes on as it was"


def running(pods: list[Object]) -> dict[str, int]:
    """Those that are ready."""
    return identities([pod for pod in pods if ready(pod)])


def waiting(pods: list[Object]) -> bool:
    """Whether one of the pods waits for an image that does not come."""
    reasons = {
        each.get("state", {}).get("waiting", {}).get("reason")
        for pod in pods
        for each in pod["status"].get("containerStatuses", ())
    }
    return bool(reasons & {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"})


pytestmark = pytest.mark.usefixtures("cluster")
