"""The operator goes, the cache stays, and nothing holds it."""

from demo import waiting
from demo.errors import StoryError
from demo.opening import OPERATOR
from demo.stage import Stage
from demo.waiting import Look
from olm_demo import objects
from olm_demo.installing import OURS, WEBHOOKS
from olm_demo.objects import OPERATOR_NAMESPACE, PACKAGE, SECOND
from olm_demo.upgrading import same


def leaves(stage: Stage) -> None:
    """Delete Subscription and release: operator and webhooks go, Memcached and pods stay."""
    before = objects.fingerprint(stage.pods())
    stage.told(["delete", "-n", OPERATOR_NAMESPACE, "subscription", PACKAGE])
    stage.told(["delete", "-n", OPERATOR_NAMESPACE, "clusterserviceversion", SECOND])
    waiting.wait(stage.screen, lambda: _removed(stage), "the end of the operator")
    same(before, objects.fingerprint(stage.pods()))
    stage.told(stage.kubectl.here("get", "memcacheds,pods"))
    stage.screen.say("No operator, no webhook configuration; the cache goes on.")


def _removed(stage: Stage) -> Look:
    left = stage.kubectl.items(["get", "deployments,pods", "-n", OPERATOR_NAMESPACE, "-l", OPERATOR])
    left += stage.kubectl.items(["get", WEBHOOKS, "-l", OURS])
    return Look(not left, f"{len(left)} objects left: {', '.join(each['metadata']['name'] for each in left[:3])}")


def cleans_up(stage: Stage) -> None:
    """The Memcached can be changed and deleted without the operator; then nothing of the story is left but the CRDs."""
    target = f"memcached/{stage.name}"
    stage.told(stage.kubectl.here("annotate", target, "story=over"))
    stage.told(stage.kubectl.here("delete", target, "--cascade=foreground"))
    if stage.pods():
        raise StoryError("the Memcached is gone, but pods of it are left")
    stage.told(["delete", "namespace", stage.kubectl.namespace, OPERATOR_NAMESPACE])
