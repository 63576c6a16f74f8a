"""Reading objects: pure functions."""

from collections.abc import Collection
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
