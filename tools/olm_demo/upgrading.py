"""The operator gets newer, and the cache does not notice."""

from demo import waiting
from demo.errors import StoryError
from demo.kubectl import Object
from demo.stage import Stage
from demo.waiting import Look
from olm_demo import objects
from olm_demo.installing import RELEASES, approve, until_installed
from olm_demo.objects import FIRST, OPERATOR_NAMESPACE, SECOND

NAMED = "metadata.name=memcached-operator-webhook-service-cert"
CERTIFICATES = ["get", "secrets", "-n", OPERATOR_NAMESPACE, f"--field-selector={NAMED}"]


def upgrades(stage: Stage) -> None:
    """Approve the second release; afterwards every pod of the cache is the same one, never restarted."""
    before = objects.fingerprint(stage.pods())
    approve(stage, SECOND)
    seconds = until_installed(stage, SECOND)
    waiting.wait(stage.screen, lambda: _only_the_new(stage), f"the end of {FIRST}")
    until_installed(stage, SECOND)
    stage.told(RELEASES)
    stage.settle("the Memcached under the new release")
    same(before, objects.fingerprint(stage.pods()))
    stage.screen.say(f"Upgraded within {seconds:.1f} s. The pods are the same ones, and none was restarted.")


def _only_the_new(stage: Stage) -> Look:
    return only_the_new(stage.kubectl.items(RELEASES), stage.kubectl.items(CERTIFICATES))


def only_the_new(releases: list[Object], certificates: list[Object]) -> Look:
    """How far the old release is gone. OLM deletes its certificate with it, and makes another for the new one."""
    names = [each["metadata"]["name"] for each in releases]
    owners = [owner["name"] for each in certificates for owner in each["metadata"].get("ownerReferences", [])]
    text = f"{', '.join(names)}; certificate of {', '.join(owners) or 'nobody'}"
    return Look(names == [SECOND] and owners == [SECOND], text)


def same(before: dict[str, int], after: dict[str, int]) -> None:
    """Raises StoryError where pods of the cache were replaced or restarted."""
    if not before:
        raise StoryError("the Memcached has no pods to be watched")
    if before != after:
        raise StoryError(f"of {len(before)} pods, {len(before.items() - after.items())} were replaced or restarted")
