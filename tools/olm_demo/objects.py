"""What a newcomer writes to OLM, and what OLM's objects say: pure."""

from typing import Any

from bundle.release import project_version
from demo.errors import StoryError
from demo.kubectl import Object
from demo.waiting import Look

PACKAGE = "memcached-operator"
CHANNEL = "stable"
CATALOG_NAMESPACE = "olm"
OPERATOR_NAMESPACE = "memcached-operator-system"
RELEASES = (project_version(), "0.2.0")
"""This release, and a later one that differs in nothing but its version."""
FIRST, SECOND = (f"{PACKAGE}.v{version}" for version in RELEASES)
INSTALL_SECONDS = 180.0
"""A release is installed within a minute; with images to pull it takes longer."""


def subscription(first: str) -> str:
    """Namespace, OperatorGroup and Subscription that start at the release `first` and go on by approval."""
    return f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {OPERATOR_NAMESPACE}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: {PACKAGE}
  namespace: {OPERATOR_NAMESPACE}
spec: {{}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: {PACKAGE}
  namespace: {OPERATOR_NAMESPACE}
spec:
  name: {PACKAGE}
  channel: {CHANNEL}
  source: {PACKAGE}
  sourceNamespace: {CATALOG_NAMESPACE}
  startingCSV: {first}
  installPlanApproval: Manual
"""


def check_catalog(catalog: Object) -> None:
    """Raises StoryError where OLM does not read our catalogue."""
    state = catalog.get("status", {}).get("connectionState", {}).get("lastObservedState")
    if state != "READY":
        raise StoryError(f"OLM does not read the catalogue {PACKAGE} ({state or 'not served'}); run `make olm-demo`")


def plan_for(plans: list[Object], release: str) -> str:
    """The name of the plan that installs a release and waits for approval; empty where there is none."""
    for plan in plans:
        spec = plan["spec"]
        if release in spec.get("clusterServiceVersionNames", []) and not spec.get("approved"):
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
