"""Reading objects and command output: pure functions. A problem is a clause; it is empty if there is none."""

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


def resolved(text: str) -> list[str]:
    """The distinct addresses in the output of `getent ahosts`."""
    return sorted({line.split()[0] for line in text.splitlines() if line.strip()})


def mismatch(addresses: Sequence[str], pods: Sequence[Object]) -> str:
    """How addresses differ from those of the pods, of which each has one, or two on a dual-stack cluster."""
    known = {pod["metadata"]["name"]: {each["ip"] for each in pod["status"].get("podIPs", [])} for pod in pods}
    unknown = sorted(set(addresses) - {address for each in known.values() for address in each})
    missing = sorted(name for name, each in known.items() if not each & set(addresses))
    words = [f"no address for {', '.join(missing)}"] if missing else []
    words += [f"no pod has {', '.join(unknown)}"] if unknown else []
    return "; ".join(words)


def wrong_answers(text: str, addresses: Sequence[str], value: str) -> str:
    """Which addresses did not respond to `set` and `get` as memcached does."""
    blocks = {block.split("\n", 1)[0].strip(): block for block in text.replace("\r", "").split("== ") if block.strip()}
    expected = f"STORED\nVALUE greeting 0 {len(value)}\n{value}\nEND"
    wrong = [address for address in addresses if expected not in blocks.get(address, "")]
    return f"{', '.join(wrong)} did not return {value!r}" if wrong else ""


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
