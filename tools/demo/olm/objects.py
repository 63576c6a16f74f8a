"""The objects a user writes for OLM, and reading OLM's own: pure functions."""

from typing import Any

from bundle.release import PACKAGE, next_minor, project_version
from bundle.subscription import NAMESPACE
from bundle.subscription import subscription as manifests
from demo.errors import DemoError
from demo.kubectl import Object
from demo.waiting import Progress

CHANNEL = "stable"
CATALOG_NAMESPACE = "olm"
OPERATOR_NAMESPACE = NAMESPACE
RELEASES = (project_version(), next_minor(project_version()))
"""This release, and a later one that differs only in its version."""
FIRST, SECOND = (f"{PACKAGE}.v{version}" for version in RELEASES)
INSTALL_SECONDS = 180.0
"""OLM installs a release within a minute; pulling images takes longer."""


def subscription(first: str) -> str:
    """Namespace, OperatorGroup and Subscription that start at the release `first` and upgrade after approval."""
    return manifests(PACKAGE, CATALOG_NAMESPACE, CHANNEL, f"startingCSV: {first}", "installPlanApproval: Manual")


def check_catalog(catalog: Object) -> None:
    """Raises DemoError if OLM does not read the catalog."""
    state = catalog.get("status", {}).get("connectionState", {}).get("lastObservedState")
    if state != "READY":
        state = state or "no CatalogSource"
        raise DemoError(f"OLM does not read the catalog {PACKAGE} ({state}); run `make demo SCENES=olm`")


def plan_for(plans: list[Object], release: str) -> str:
    """The name of the InstallPlan that installs a release and waits for approval; empty if there is none.

    A plan without a status does not count: if it were approved before OLM writes its status, it would never get one.
    """
    for plan in plans:
        waits = plan.get("status", {}).get("phase") == "RequiresApproval"
        if waits and release in plan["spec"].get("clusterServiceVersionNames", []):
            return plan["metadata"]["name"]
    return ""


def installed(csv: Object | None, release: str) -> Progress:
    """The progress of an installation; a failure is OLM's own message."""
    status = (csv or {}).get("status", {})
    phase = status.get("phase", "no phase yet")
    problem = status.get("message", "") if phase == "Failed" else ""
    return Progress(phase == "Succeeded", f"{release}: {phase}", problem)


def fingerprint(pods: list[Object]) -> dict[str, int]:
    """The restarts of each pod by uid: it changes if a pod is replaced or restarted."""
    return {pod["metadata"]["uid"]: _restarts(pod) for pod in pods}


def _restarts(pod: Object) -> int:
    statuses: list[dict[str, Any]] = pod.get("status", {}).get("containerStatuses", [])
    return sum(status["restartCount"] for status in statuses)
