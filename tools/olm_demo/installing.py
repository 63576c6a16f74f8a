"""From a catalogue to an operator at work."""

import json

from demo import opening, waiting
from demo.errors import StoryError
from demo.kubectl import Object
from demo.stage import Stage
from demo.waiting import Look
from olm_demo import objects
from olm_demo.objects import CATALOG_NAMESPACE, FIRST, INSTALL_SECONDS, OPERATOR_NAMESPACE, PACKAGE

CATALOG = ["get", "-n", CATALOG_NAMESPACE, "catalogsource", PACKAGE]
PLANS = ["get", "-n", OPERATOR_NAMESPACE, "installplans"]
RELEASES = ["get", "-n", OPERATOR_NAMESPACE, "clusterserviceversions"]
WEBHOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
OURS = "olm.owner.namespace=" + OPERATOR_NAMESPACE


def catalogue_is_read(stage: Stage) -> None:
    """OLM has the catalogue, and no other installation is in the way."""
    kubectl = stage.kubectl
    check_free(kubectl.items(["get", "deployments", "-A", "-l", opening.OPERATOR]))
    found = json.loads(kubectl.must([*CATALOG, "--ignore-not-found", "-o", "json"]).out or "{}")
    objects.check_catalog(found)
    stage.told(CATALOG)


def check_free(deployments: list[Object]) -> None:
    """Raises StoryError where the operator runs already: two of them would work on the same objects."""
    if deployments:
        where = ", ".join(sorted({each["metadata"]["namespace"] for each in deployments}))
        raise StoryError(f"the operator is installed already, in {where}: run `make undeploy`, or use another cluster")


def subscribes(stage: Stage) -> None:
    """Write the Subscription, and approve the plan that OLM makes of it."""
    stage.told(["apply", "-f", "-"], objects.subscription(FIRST))
    approve(stage, FIRST)


def approve(stage: Stage, release: str) -> None:
    """Wait for the plan of a release, and approve it."""
    plans: list[str] = []

    def look() -> Look:
        plans[:] = [objects.plan_for(stage.kubectl.items(PLANS), release)]
        return Look(bool(plans[0]), f"no plan for {release} yet")

    waiting.wait(stage.screen, look, f"OLM's plan for {release}")
    patch = json.dumps({"spec": {"approved": True}})
    stage.told(["patch", "-n", OPERATOR_NAMESPACE, "installplan", plans[0], "--type=merge", "-p", patch])


def succeeds(stage: Stage) -> None:
    """Wait until the release is installed; its webhooks carry OLM's certificate."""
    release = FIRST
    seconds = until_installed(stage, release)
    stage.told(RELEASES)
    stage.told(["get", "deployments", "-n", OPERATOR_NAMESPACE])
    check_webhooks(stage.kubectl.items(["get", WEBHOOKS, "-l", OURS]))
    stage.screen.say(f"{release} was installed {seconds:.1f} s after its approval, its four webhooks are armed.")


def until_installed(stage: Stage, release: str) -> float:
    """Wait until OLM says Succeeded; the seconds it took."""

    def look() -> Look:
        words = [*RELEASES, release, "--ignore-not-found", "-o", "json"]
        found = stage.kubectl.must(words).out
        return objects.installed(json.loads(found) if found.strip() else None, release)

    return waiting.wait(stage.screen, look, f"the installation of {release}", INSTALL_SECONDS)


def check_webhooks(configurations: list[Object]) -> None:
    """Raises StoryError unless every webhook there is carries a certificate to trust."""
    webhooks = [webhook for each in configurations for webhook in each["webhooks"]]
    bare = [webhook["name"] for webhook in webhooks if not webhook["clientConfig"].get("caBundle")]
    if len(webhooks) != 4 or bare:
        raise StoryError(
            f"OLM armed {len(webhooks) - len(bare)} of 4 webhooks: {', '.join(bare) or 'the rest is missing'}"
        )
