"""What a newcomer writes to OLM, and what OLM's objects say: pure."""

from typing import Any

from bundle.release import PACKAGE, next_minor, project_version
from bundle.subscription import NAMESPACE
from bundle.subscription import subscription as manifests
from demo.errors import StoryError
from demo.kubectl import Object
from demo.waiting import Look

CHANNEL = "stable"
CATALOG_NAMESPACE = "olm"
OPERATOR_NAMESPACE = NAMESPACE
RELEASES = (project_version(), next_minor(project_version()))
"""This release, and a later one that differs in nothing but its version."""
FIRST, SECOND = (f"{PACKAGE}.v{version}" for version in RELEASES)
INSTALL_SECONDS = 180.0
"""A release is installed within a minute; with images to pull it takes longer."""


def subscription(first: str) -> str:
    """Namespace, OperatorGroup and Subscription that start at the release `first` and go on by approval."""
    return manifests(PACKAGE, CATALOG_NAMESPACE, CHANNEL, f"startingCSV: {first}", "installPlanApproval: Manual")


def check_catalog(catalog: Object) -> None:
    """Raises StoryError where OLM does not read our catalogue."""
    state = catalog.get("status", {}).get("connectionState", {}).get("lastObservedState")
    if state != "READY":
        raise StoryError(f"OLM does not read the catalogue {PACKAGE} ({state or 'not served'}); run `make olm-demo`")


def plan_for(plans: list[Object], release: str) -> str:
    """The name of the plan that installs a release and waits for approval; empty where there is none.

    One that OLM has made but not yet written the status of does not count: approved now, it would stay without one.
    """
    for plan in plans:
        waits = plan.get("status", {}).get("phase") == "RequiresApproval"
        if waits and release in plan["spec"].get("clusterServiceVersionNames", []):
            return plan["metadata"]["name"]
    return ""


def installed(csv: Object | None, release: str) -> Look:
    """How far OLM is with a release: a failure is told in its own words."""
    status = (csv or {}).get("status", {})
    phase = status.get("phase", "not there yet")
    fault = status.get("message", "") if phase == "Failed" else ""
    return Look(phase == "Succeeded", f"{release}: {phase}", fault)


def fingerprint(pods: list[Object]) -> dict[str, int]:
    """The pods by uid, with how often their containers were restarted: the same before and after, or something was."""
    return {pod["metadata"]["uid"]: _restarts(pod) for pod in pods}


def _restarts(pod: Object) -> int:
    statuses: list[dict[str, Any]] = pod.get("status", {}).get("containerStatuses", [])
    return sum(status["restartCount"] for status in statuses)
