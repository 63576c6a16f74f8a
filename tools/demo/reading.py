"""Reading objects: pure functions."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

Object = dict[str, Any]

READY = {"Available": "True", "Progressing": "False", "Degraded": "False"}


class Progress(NamedTuple):
    """The result of one check: whether the wait is over, the progress, and a problem if there is one."""

    done: bool
    text: str
    problem: str = ""


def nodes(memcached: Object) -> list[str]:
    """The live pods that the status lists."""
    return memcached.get("status", {}).get("nodes", [])


def progress(memcached: Object, deleted: Collection[str] = ()) -> Progress:
    """The progress of a Memcached: done when it is as its spec says, and its status lists no deleted pod."""
    status = memcached.get("status", {})
    size, ready, generation = (
        memcached["spec"]["size"],
        status.get("readyReplicas", 0),
        memcached["metadata"]["generation"],
    )
    current = {each["type"]: each for each in status.get("conditions", []) if each["observedGeneration"] == generation}
    states = {name: current[name]["status"] for name in READY if name in current}
    left = sorted(set(nodes(memcached)) & set(deleted))
    words = [f"{ready} of {size} pods ready", *(f"{name}={state}" for name, state in states.items())]
    words += [f"still in the status: {', '.join(left)}"] if left else []
    done = states == READY and len(nodes(memcached)) == size == ready and not left
    problem = current["Degraded"]["message"] if states.get("Degraded") == "True" else ""
    return Progress(done, ", ".join(words), problem)


def restarts(pods: Sequence[Object]) -> dict[str, int]:
    """The restarts of each pod by uid: it differs if a pod was replaced or restarted."""
    return {
        pod["metadata"]["uid"]: sum(each["restartCount"] for each in pod["status"].get("containerStatuses", []))
        for pod in pods
    }


def plan_for(plans: Sequence[Object], release: str) -> str:
    """The name of the InstallPlan that installs a release and waits for approval; empty if there is none.

    A plan without a status does not count: if it were approved before OLM writes its status, it would never get one.
    """
    for plan in plans:
        waits = plan.get("status", {}).get("phase") == "RequiresApproval"
        if waits and release in plan["spec"].get("clusterServiceVersionNames", []):
            return plan["metadata"]["name"]
    return ""


def installed(csv: Object, release: str) -> Progress:
    """The progress of an installation; a failure is OLM's own message."""
    status = csv.get("status", {})
    phase = status.get("phase", "no phase yet")
    return Progress(phase == "Succeeded", f"{release}: {phase}", status.get("message", "") if phase == "Failed" else "")


def replaced(release: str, releases: Sequence[Object], certificates: Sequence[Object]) -> Progress:
    """The progress of an upgrade's end: OLM deletes the old release with its certificate, and creates a new one."""
    names = [each["metadata"]["name"] for each in releases]
    owners = [owner["name"] for each in certificates for owner in each["metadata"].get("ownerReferences", [])]
    text = f"{', '.join(names)}; certificate of {', '.join(owners) or 'no release'}"
    return Progress(names == [release] and owners == [release], text)
