"""From a catalog to a running operator."""

import json

from demo import waiting
from demo.cache import opening
from demo.errors import DemoError
from demo.kubectl import Object
from demo.olm import objects
from demo.olm.objects import CATALOG_NAMESPACE, FIRST, INSTALL_SECONDS, OPERATOR_NAMESPACE, PACKAGE
from demo.stage import Stage
from demo.waiting import Progress

CATALOG = ["get", "-n", CATALOG_NAMESPACE, "catalogsource", PACKAGE]
PLANS = ["get", "-n", OPERATOR_NAMESPACE, "installplans"]
RELEASES = ["get", "-n", OPERATOR_NAMESPACE, "clusterserviceversions"]
WEBHOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
OWNED = "olm.owner.namespace=" + OPERATOR_NAMESPACE


def catalog_is_read(stage: Stage) -> None:
    """OLM reads the catalog, and the operator is not installed in another way."""
    kubectl = stage.kubectl
    check_not_installed(kubectl.items(["get", "deployments", "-A", "-l", opening.OPERATOR]))
    found = json.loads(kubectl.must([*CATALOG, "--ignore-not-found", "-o", "json"]).out or "{}")
    objects.check_catalog(found)
    stage.show(CATALOG)


def check_not_installed(deployments: list[Object]) -> None:
    """Raises DemoError if the operator is running already: two of them would reconcile the same objects."""
    if deployments:
        where = ", ".join(sorted({each["metadata"]["namespace"] for each in deployments}))
        raise DemoError(f"the operator is already installed in {where}: run `make undeploy`, or use another cluster")


def subscribes(stage: Stage) -> None:
    """Create the Subscription, and approve the InstallPlan that OLM creates for it."""
    stage.show(["apply", "-f", "-"], objects.subscription(FIRST))
    approve(stage, FIRST)


def approve(stage: Stage, release: str) -> None:
    """Wait for the InstallPlan of a release, and approve it."""
    plans: list[str] = []

    def check() -> Progress:
        plans[:] = [objects.plan_for(stage.kubectl.items(PLANS), release)]
        return Progress(bool(plans[0]), f"no InstallPlan for {release} yet")

    waiting.wait(stage.screen, check, f"the InstallPlan for {release}")
    patch = json.dumps({"spec": {"approved": True}})
    stage.show(["patch", "-n", OPERATOR_NAMESPACE, "installplan", plans[0], "--type=merge", "-p", patch])


def succeeds(stage: Stage) -> None:
    """Wait until the release is installed; OLM has set the webhooks' certificate."""
    seconds = wait_installed(stage, FIRST)
    stage.show(RELEASES)
    stage.show(["get", "deployments", "-n", OPERATOR_NAMESPACE])
    check_webhooks(stage.kubectl.items(["get", WEBHOOKS, "-l", OWNED]))
    stage.screen.say(f"OLM installed {FIRST} {seconds:.1f} s after the approval; all 4 webhooks have a CA bundle.")


def wait_installed(stage: Stage, release: str) -> float:
    """Wait until the release's phase is Succeeded; returns the seconds it took."""

    def check() -> Progress:
        words = [*RELEASES, release, "--ignore-not-found", "-o", "json"]
        found = stage.kubectl.must(words).out
        return objects.installed(json.loads(found) if found.strip() else None, release)

    return waiting.wait(stage.screen, check, f"the installation of {release}", INSTALL_SECONDS)


def check_webhooks(configurations: list[Object]) -> None:
    """Raises DemoError unless there are four webhooks, each with a CA bundle."""
    webhooks = [webhook for each in configurations for webhook in each["webhooks"]]
    bare = [webhook["name"] for webhook in webhooks if not webhook["clientConfig"].get("caBundle")]
    if len(webhooks) != 4 or bare:
        missing = f" ({', '.join(bare)} without)" if bare else ""
        raise DemoError(f"{len(webhooks) - len(bare)} of 4 webhooks have a CA bundle{missing}")
