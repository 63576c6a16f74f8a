"""The operator is upgraded, and the pods of the Memcached keep running."""

from demo import waiting
from demo.errors import DemoError
from demo.kubectl import Object
from demo.olm import objects
from demo.olm.installing import RELEASES, approve, wait_installed
from demo.olm.objects import FIRST, OPERATOR_NAMESPACE, SECOND
from demo.stage import Stage
from demo.waiting import Progress

NAME = "metadata.name=memcached-operator-webhook-service-cert"
CERTIFICATES = ["get", "secrets", "-n", OPERATOR_NAMESPACE, f"--field-selector={NAME}"]


def upgrades(stage: Stage) -> None:
    """Approve the second release; no pod of the Memcached is replaced or restarted."""
    before = objects.fingerprint(stage.pods())
    approve(stage, SECOND)
    seconds = wait_installed(stage, SECOND)
    waiting.wait(stage.screen, lambda: _old_release_removed(stage), f"the removal of {FIRST}")
    wait_installed(stage, SECOND)
    stage.show(RELEASES)
    stage.wait_ready("the Memcached after the upgrade")
    check_unchanged(before, objects.fingerprint(stage.pods()))
    stage.screen.say(f"Upgraded in {seconds:.1f} s. No pod of the Memcached was replaced or restarted.")


def _old_release_removed(stage: Stage) -> Progress:
    return old_release_removed(stage.kubectl.items(RELEASES), stage.kubectl.items(CERTIFICATES))


def old_release_removed(releases: list[Object], certificates: list[Object]) -> Progress:
    """The progress of the removal. OLM deletes the old release's certificate and creates one for the new release."""
    names = [each["metadata"]["name"] for each in releases]
    owners = [owner["name"] for each in certificates for owner in each["metadata"].get("ownerReferences", [])]
    text = f"{', '.join(names)}; certificate of {', '.join(owners) or 'no release'}"
    return Progress(names == [SECOND] and owners == [SECOND], text)


def check_unchanged(before: dict[str, int], after: dict[str, int]) -> None:
    """Raises DemoError if pods of the Memcached were replaced or restarted."""
    if not before:
        raise DemoError("the Memcached has no pods to compare")
    if before != after:
        raise DemoError(f"{len(before.items() - after.items())} of {len(before)} pods were replaced or restarted")
