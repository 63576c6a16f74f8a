"""What objects and answers say: pure functions."""

from collections.abc import Collection, Sequence
from typing import Any

from demo.kubectl import Object
from demo.waiting import Look

SETTLED = {"Available": "True", "Progressing": "False", "Degraded": "False"}


def conditions(memcached: Object) -> dict[str, dict[str, Any]]:
    """The conditions by type; only those that tell of the object as it stands now."""
    generation = memcached["metadata"]["generation"]
    found: list[dict[str, Any]] = memcached.get("status", {}).get("conditions", [])
    return {each["type"]: each for each in found if each.get("observedGeneration") == generation}


def nodes(memcached: Object) -> list[str]:
    """The live pods as the status names them."""
    return memcached.get("status", {}).get("nodes", [])


def progress(memcached: Object, gone: Collection[str] = ()) -> Look:
    """How far a Memcached is: done when it is as declared, and none of the pods in `gone` is left."""
    size, ready = memcached["spec"]["size"], memcached.get("status", {}).get("readyReplicas", 0)
    found = conditions(memcached)
    states = {name: condition["status"] for name, condition in found.items()}
    left = sorted(set(nodes(memcached)) & set(gone))
    over = states == SETTLED and len(nodes(memcached)) == size == ready and not left
    degraded = found.get("Degraded", {})
    fault = degraded["message"] if degraded.get("status") == "True" else ""
    return Look(over, _told(size, ready, found, left), fault)


def _told(size: int, ready: int, found: dict[str, dict[str, Any]], left: Sequence[str]) -> str:
    words = [f"{ready} of {size} pods ready"]
    words += [f"{name}={found[name]['status']}" for name in SETTLED if name in found]
    words += [f"still in the status: {', '.join(left)}"] if left else []
    return ", ".join(words)


def pod_addresses(pods: Sequence[Object], names: Collection[str]) -> dict[str, list[str]]:
    """The addresses of the named pods: one, or two on a dual-stack cluster."""
    return {
        pod["metadata"]["name"]: [each["ip"] for each in pod["status"].get("podIPs", [])]
        for pod in pods
        if pod["metadata"]["name"] in names
    }


def looked_up(text: str) -> list[str]:
    """The addresses in the output of `getent ahosts`, each once."""
    return sorted({line.split()[0] for line in text.splitlines() if line.strip()})


def unmatched(addresses: Sequence[str], pods: dict[str, list[str]]) -> str:
    """Why these addresses are not those of the pods: a clause, or nothing where every pod has its address."""
    known = {address for each in pods.values() for address in each}
    strange = sorted(set(addresses) - known)
    missing = sorted(name for name, each in pods.items() if not set(each) & set(addresses))
    words = [f"no address for {', '.join(missing)}"] if missing else []
    words += [f"{', '.join(strange)} is no pod of it"] if strange else []
    return "; ".join(words)


def wrong_answers(text: str, addresses: Sequence[str], value: str) -> str:
    """What is wrong with what the pods answered to `set` and `get`: a clause, or nothing."""
    blocks = {block.split("\n", 1)[0].strip(): block for block in text.replace("\r", "").split("== ") if block.strip()}
    told = f"STORED\nVALUE greeting 0 {len(value)}\n{value}\nEND"
    wrong = [address for address in addresses if told not in blocks.get(address, "")]
    return f"no {value!r} came back from {', '.join(wrong)}" if wrong else ""
