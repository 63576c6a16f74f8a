"""Upgrades do not affect caches, and a release that never starts does not replace the previous one."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support import kube, olm, olm_certificates
from support.audit import Audit
from support.kube import Object, eventually, kubectl, ready, restart_counts
from support.memcached import IMAGE, OTHER_IMAGE, SMALL, memcached, pods_of, send_commands, wait_until_ready
from support.olm import ABSENT, SECONDS, VERSION, Installation, Releases, csv_name, next_minor
from support.probing import Record, probing

CACHES = 8
VALUE = b"VALUE k 0 1\r\nv\r\n"
QUIET = 10
"""Seconds for which the previous release must work while the next one does not start."""


@contextmanager
def installed_from(releases: Releases, *bundles: Path, version: str) -> Generator[Installation]:
    """Install the newest release of a catalog of these bundles for all namespaces."""
    releases.serve(*bundles)
    with olm.subscribed() as installation:
        installation.succeeded(version)
        yield installation


def cache_pods(namespace: str) -> list[Object]:
    """The pods of every cache."""
    return [pod for number in range(CACHES) for pod in pods_of(namespace, f"cache-{number}")]


def read_error(addresses: list[str]) -> str:
    """Read the value from every cache; return an error for the first that does not return it."""
    for address in addresses:
        try:
            if not send_commands(address, 11211, b"get k").startswith(VALUE):
                return f"{address} does not have the value"
        except OSError as error:
            return f"{address}: {error}"
    return ""


def configured_releases() -> str:
    """The releases that have webhook configurations now."""
    return " ".join(sorted({each["metadata"]["labels"]["olm.owner"] for each in olm.configurations()}))


def test_an_upgrade_does_not_affect_caches(
    releases: Releases,
    current_bundle: Path,
    namespace: str,
    other_namespace: str,
    audit: Audit,
    record_property: Record,
) -> None:
    """The new release has another default image, which would be the most likely cause of a restart.

    OLM deletes the certificate together with its release and creates a new one: admission must survive that too.
    """
    second = releases.bundle(next_minor(1), replaces=VERSION, memcached=OTHER_IMAGE)
    with installed_from(releases, current_bundle, version=VERSION) as installation:
        addresses = create_caches(namespace)
        before, certificate = (
            restart_counts(cache_pods(namespace)),
            olm_certificates.secret_files(installation)["tls.crt"],
        )
        audit = Audit(audit.path)
        with (
            probing(lambda: read_error(addresses)) as reads,
            olm_certificates.recorded_availability(installation, namespace, record_property) as admission,
            probing(configured_releases) as coexisting,
        ):
            releases.serve(current_bundle, second)
            installation.succeeded(next_minor(1))
            eventually(
                lambda: installation.releases() == [csv_name(next_minor(1))], SECONDS, "the previous release is removed"
            )
            olm_certificates.wait_until_rotated(installation, certificate, admission)
            # A terminating webhook pod still serves for seconds, with its own release's default image.
            eventually(
                lambda: installation.running_releases(olm.WEBHOOK) == {csv_name(next_minor(1))},
                SECONDS,
                "its pods are removed",
            )
            kube.apply(memcached(other_namespace, resources=SMALL))
            assert wait_until_ready(other_namespace)["spec"]["image"] == OTHER_IMAGE, (
                "a new cache must have the new release's image"
            )
            audit.wait_until_quiet()
        record_property(f"number of times that all {CACHES} caches were read", len(reads.successes))
        assert reads.successes
        assert reads.failures == []
        assert restart_counts(cache_pods(namespace)) == before
        assert sum(before.values()) == 0
        assert {image(pod) for pod in cache_pods(namespace)} == {IMAGE}
        assert {image(pod) for pod in pods_of(other_namespace)} == {OTHER_IMAGE}
        assert f"{csv_name(VERSION)} {csv_name(next_minor(1))}" in {value for _, value in coexisting.failures}
        assert configured_releases() == csv_name(next_minor(1))
        assert audit.writes(other_namespace), "the new cache must be reconciled"
        assert not audit.writes(namespace), "existing caches must not be written"


def create_caches(namespace: str) -> list[str]:
    """Create the caches and store a value in each; return their addresses."""
    objects = [memcached(namespace, f"cache-{number}", resources=SMALL) for number in range(CACHES)]
    kubectl("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": objects})
    for number in range(CACHES):
        wait_until_ready(namespace, f"cache-{number}")
    addresses = [pod["status"]["podIP"] for pod in cache_pods(namespace)]
    assert len(addresses) == CACHES
    for address in addresses:
        assert send_commands(address, 11211, b"set k 0 0 1", b"v").startswith(b"STORED")
    return addresses


def image(pod: Object) -> str:
    """The image that a pod of a cache runs."""
    (container,) = pod["spec"]["containers"]
    return container["image"]


@pytest.mark.modes
def test_skipped_releases_are_never_installed(releases: Releases, current_bundle: Path) -> None:
    bad = releases.bundle(next_minor(1), replaces=VERSION, image=ABSENT)
    third = releases.bundle(next_minor(2), replaces=VERSION, skips=next_minor(1))
    fifth = releases.bundle(next_minor(4), skip_range=f">={VERSION} <{next_minor(4)}")
    with (
        installed_from(releases, current_bundle, version=VERSION) as installation,
        probing(lambda: installed_releases(installation)) as seen,
    ):
        releases.serve(current_bundle, bad, third)
        installation.succeeded(next_minor(2))
        releases.serve(fifth)
        installation.succeeded(next_minor(4))
        eventually(
            lambda: installation.releases() == [csv_name(next_minor(4))], SECONDS, "the other releases are removed"
        )
    assert csv_name(next_minor(1)) not in " ".join(value for _, value in seen.failures)
    assert csv_name(next_minor(2)) in " ".join(value for _, value in seen.failures)


def installed_releases(installation: Installation) -> str:
    """The releases that exist now."""
    return " ".join(installation.releases())


@pytest.mark.modes
def test_a_release_that_never_starts_does_not_replace_the_previous_one(
    releases: Releases, current_bundle: Path, namespace: str, record_property: Record
) -> None:
    broken = releases.bundle(next_minor(1), replaces=VERSION, image=ABSENT)
    with installed_from(releases, current_bundle, version=VERSION) as installation:
        before = {name: restart_counts(installation.pods(name)) for name in (olm.CONTROLLER, olm.WEBHOOK)}
        with probing(lambda: olm_certificates.admission_error(namespace)) as admission:
            releases.serve(current_bundle, broken)
            for name in before:
                eventually(
                    lambda name=name: waits_for_image(installation.pods(name)), SECONDS, f"{name} cannot pull its image"
                )
            kube.apply(memcached(namespace, resources=SMALL))
            wait_until_ready(namespace)
            eventually(lambda: admission.stable_seconds() > QUIET, SECONDS, "admission responds")
        record_property("longest outage of admission, in seconds", round(admission.longest_outage(), 1))
        assert admission.failures == [], "none of the previous pods is replaced"
        assert installation.phase(next_minor(1)) == "Installing"
        assert installation.phase(VERSION) == "Replacing"
        for name, pods in before.items():
            assert pods.items() <= ready_pods(installation.pods(name)).items(), (
                f"the previous pods of {name} must keep running"
            )


def ready_pods(pods: list[Object]) -> dict[str, int]:
    """The ready ones of these pods, with their restarts by uid."""
    return restart_counts([pod for pod in pods if ready(pod)])


def waits_for_image(pods: list[Object]) -> bool:
    """Whether one of the pods waits for an image that cannot be pulled."""
    reasons = {
        each.get("state", {}).get("waiting", {}).get("reason")
        for pod in pods
        for each in pod["status"].get("containerStatuses", ())
    }
    return bool(reasons & {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"})
