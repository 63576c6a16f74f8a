"""The Operator Lifecycle Manager (OLM) installs, upgrades and removes the operator; a Memcached keeps running."""

from bundle.release import PACKAGE, next_minor, project_version
from bundle.subscription import NAMESPACE as OPERATOR_NAMESPACE
from bundle.subscription import subscription
from demo import cache, reading
from demo.reading import Progress
from demo.stage import DemoError, Stage, step

NAMESPACE = "memcached-olm-demo"
MORE_NAMESPACES = (OPERATOR_NAMESPACE,)
CATALOG_NAMESPACE = "olm"
RELEASES = (project_version(), next_minor(project_version()))
"""This release, and a later one that differs only in its version."""
FIRST, SECOND = (f"{PACKAGE}.v{version}" for version in RELEASES)
THERE = f"kubectl -n {OPERATOR_NAMESPACE}"
OWN_WEBHOOKS = f"kubectl get {cache.WEBHOOKS} -l olm.owner.namespace={OPERATOR_NAMESPACE}"


@step("OLM reads the catalog", "It has two releases; none is installed yet.")
def catalog_is_read(stage: Stage) -> None:
    if found := stage.items(f"kubectl get deployments -A -l {cache.OPERATOR}"):
        where = ", ".join(sorted({each["metadata"]["namespace"] for each in found}))
        raise DemoError(f"the operator is already installed in {where}: run `make undeploy`, or use another cluster")
    catalog = f"kubectl -n {CATALOG_NAMESPACE} get catalogsource {PACKAGE}"
    status = stage.read(f"{catalog} --ignore-not-found").get("status", {})
    state = status.get("connectionState", {}).get("lastObservedState")
    if state != "READY":
        raise DemoError(f"OLM does not read the catalog {PACKAGE} ({state}); run `make demo SCENES=olm`")
    stage.show(catalog)


@step("Create a Subscription", "Select the first release and approve OLM's InstallPlan.")
def subscribes(stage: Stage) -> None:
    options = (f"startingCSV: {FIRST}", "installPlanApproval: Manual")
    stage.show("kubectl apply -f -", subscription(PACKAGE, CATALOG_NAMESPACE, "stable", *options))
    approve(stage, FIRST)


def approve(stage: Stage, release: str) -> None:
    """Wait for the InstallPlan of a release, and approve it."""

    def found() -> str:
        return reading.plan_for(stage.items(f"{THERE} get installplans"), release)

    stage.wait(f"the InstallPlan for {release}", lambda: Progress(bool(found()), f"no InstallPlan for {release} yet"))
    stage.show(f"""{THERE} patch installplan {found()} --type=merge -p '{{"spec": {{"approved": true}}}}'""")


@step("OLM installs the release", "The phase becomes Succeeded.")
def installs(stage: Stage) -> None:
    seconds = wait_installed(stage, FIRST)
    stage.show(f"{THERE} get clusterserviceversions,deployments")
    webhooks = [webhook for each in stage.items(OWN_WEBHOOKS) for webhook in each["webhooks"]]
    ready = [webhook["name"] for webhook in webhooks if webhook["clientConfig"].get("caBundle")]
    if len(ready) != 4:
        raise DemoError(f"{len(ready)} of 4 webhooks have a CA bundle ({', '.join(ready) or 'none'})")
    stage.screen.say(f"OLM installed {FIRST} {seconds:.1f} s after the approval; all 4 webhooks have a CA bundle.")


def wait_installed(stage: Stage, release: str) -> float:
    """Wait until the release's phase is Succeeded; returns the seconds it took."""
    line = f"{THERE} get clusterserviceversion {release} --ignore-not-found"
    return stage.wait(f"the installation of {release}", lambda: reading.installed(stage.read(line), release))


@step("Upgrade the operator", "Approve the next InstallPlan; the pods keep running.")
def upgrades(stage: Stage) -> None:
    before = reading.restarts(stage.pods())
    approve(stage, SECOND)
    seconds = wait_installed(stage, SECOND)
    certificate = f"{THERE} get secrets --field-selector=metadata.name=memcached-operator-webhook-service-cert"

    def replaced() -> Progress:
        return reading.replaced(SECOND, stage.items(f"{THERE} get clusterserviceversions"), stage.items(certificate))

    stage.wait(f"the removal of {FIRST}", replaced)
    wait_installed(stage, SECOND)
    stage.show(f"{THERE} get clusterserviceversions")
    stage.wait_ready("the Memcached after the upgrade")
    check_unchanged(stage, before)
    stage.screen.say(f"Upgraded in {seconds:.1f} s. No pod of the Memcached was replaced or restarted.")


def check_unchanged(stage: Stage, before: dict[str, int]) -> None:
    """Raises DemoError if pods of the Memcached were replaced or restarted."""
    after = reading.restarts(stage.pods())
    if not before or before != after:
        raise DemoError(f"{len(before.items() - after.items())} of {len(before)} pods were replaced or restarted")


@step("Remove the operator", "Delete Subscription and release; the Memcached remains.")
def removes(stage: Stage) -> None:
    before = reading.restarts(stage.pods())
    stage.show(f"{THERE} delete subscription {PACKAGE}")
    stage.show(f"{THERE} delete clusterserviceversion {SECOND}")

    def removed() -> Progress:
        left = stage.items(f"{THERE} get deployments,pods -l {cache.OPERATOR}") + stage.items(OWN_WEBHOOKS)
        return Progress(not left, f"still there: {', '.join(each['metadata']['name'] for each in left[:3])}")

    stage.wait("the removal of the operator", removed)
    check_unchanged(stage, before)
    stage.show(f"{stage.here} get memcacheds,pods")
    stage.screen.say("The operator and its webhook configurations are removed; the pods keep running.")


@step("Clean up", "No deletion waits for the removed operator.")
def cleans_up(stage: Stage) -> None:
    stage.show(f"{stage.here} annotate {stage.target} demo=finished")
    stage.show(f"{stage.here} delete {stage.target} --cascade=foreground")
    if stage.pods():
        raise DemoError("the Memcached is deleted, but some of its pods are not")
    stage.show(f"kubectl delete namespace {stage.namespace} {OPERATOR_NAMESPACE}")


STEPS = (
    catalog_is_read,
    subscribes,
    installs,
    cache.prepares_namespace,
    cache.denies,
    cache.sets_defaults,
    cache.creates,
    cache.every_pod_responds,
    upgrades,
    removes,
    cleans_up,
)


def next_steps(_: Stage) -> str:
    """What to try next, and how to clean up."""
    return f"""\
Next steps:
  docs/install.md                    install the operator on another cluster, with or without OLM
  kubectl -n {CATALOG_NAMESPACE} get catalogsource {PACKAGE}
Clean up:
  make uninstall                     the CustomResourceDefinitions, which OLM does not delete"""
