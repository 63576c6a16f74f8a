"""Reading objects and command output: pure functions."""

from collections.abc import Collection, Sequence
from typing import Any

from demo.kubectl import Object
from demo.waiting import Progress

READY = {"Available": "True", "Progressing": "False", "Degraded": "False"}


def conditions(memcached: Object) -> dict[str, dict[str, Any]]:
    """The conditions by type; only those of the current generation."""
    generation = memcached["metadata"]["generation"]
    found: list[dict[str, Any]] = memcached.get("status", {}).get("conditions", [])
    return {each["type"]: each for each in found if each.get("observedGeneration") == generation}


def nodes(memcached: Object) -> list[str]:
    """The live pods that the status lists."""
    return memcached.get("status", {}).get("nodes", [])


def progress(memcached: Object, deleted: Collection[str] = ()) -> Progress:
    """The progress of a Memcached: done when it is as its spec says, and its status lists no deleted pod."""
    size, ready = memcached["spec"]["size"], memcached.get("status", {}).get("readyReplicas", 0)
    found = conditions(memcached)
    states = {name: condition["status"] for name, condition in found.items()}
    left = sorted(set(nodes(memcached)) & set(deleted))
    done = states == READY and len(nodes(memcached)) == size == ready and not left
    degraded = found.get("Degraded", {})
    problem = degraded["message"] if degraded.get("status") == "True" else ""
    return Progress(done, _summary(size, ready, found, left), problem)


def _summary(size: int, ready: int, found: dict[str, dict[str, Any]], left: Sequence[str]) -> str:
    words = [f"{ready} of {size} pods ready"]
    words += [f"{name}={found[name]['status']}" for name in READY if name in found]
    words += [f"still in the status: {', '.join(left)}"] if left else []
    return ", ".join(words)


def pod_addresses(pods: Sequence[Object], names: Collection[str]) -> dict[str, list[str]]:
    """The addresses of the named pods: one, or two on a dual-stack cluster."""
    return {
        pod["metadata"]["name"]: [each["ip"] for each in pod["status"].get("podIPs", [])]
        for pod in pods
        if pod["metadata"]["name"] in names
    }


def resolved(text: str) -> list[str]:
    """The distinct addresses in the output of `getent ahosts`."""
    return sorted({line.split()[0] for line in text.splitlines() if line.strip()})


def mismatch(addresses: Sequence[str], pods: dict[str, list[str]]) -> str:
    """How addresses differ from those of the pods: a clause, or empty if every pod has its address."""
    known = {address for each in pods.values() for address in each}
    unknown = sorted(set(addresses) - known)
    missing = sorted(name for name, each in pods.items() if not set(each) & set(addresses))
    words = [f"no address for {', '.join(missing)}"] if missing else []
    words += [f"no pod has {', '.join(unknown)}"] if unknown else []
    return "; ".join(words)


def wrong_answers(text: str, addresses: Sequence[str], value: str) -> str:
    """Which addresses did not respond to `set` and `get` as memcached does: a clause, or empty."""
    blocks = {block.split("\n", 1)[0].strip(): block for block in text.replace("\r", "").split("== ") if block.strip()}
    expected = f"STORED\nVALUE greeting 0 {len(value)}\n{value}\nEND"
    wrong = [address for address in addresses if expected not in blocks.get(address, "")]
    return f"{', '.join(wrong)} did not return {value!r}" if wrong else ""
