"""MemcachedProxies: the Memcached of each, its slots in use, and the state in one line."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubectl_memcached.model import conditions, images, scaling
from kubectl_memcached.model.known_problems import PROXY
from kubectl_memcached.model.objects import Object, integer, mapping, objects, ready_pods, strings, text
from kubectl_memcached.model.scaling import MAX_SLOTS, Move
from kubectl_memcached.model.shell import Shell

RING: Final = "memcached-operator.example.com/ring"
"""The annotation of a pod with its Memcached and its slots: `NAME/UID/NUMBER`, or `NAME/UID/FROM>TO/PHASE/CHANGE`."""
SIZE: Final = 2
"""The default of `spec.size`."""
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,50}[a-z0-9])?")
"""The name of a Memcached: a DNS label of at most 52 characters."""
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
RESUME: Final = "Set spec.rollout.paused to false."
"""The remedy for a pause: `kubectl memcached resume` is for caches."""
ENDED: Final = "See the Degraded condition."
"""The remedy if the spec has no pause any more: the Deployment has, while its Memcached cannot be used."""


@dataclass(frozen=True)
class Ring:
    """The slots over which proxies distribute keys. `cache`: the Memcached. `pods`: the number of proxies with it.

    `move`: the phase of a change of the number of slots, in which keys have two places.
    """

    cache: str
    slots: int
    pods: int
    move: Move | None = None


def cache_of(cr: Object) -> str:
    """The name of the Memcached in the spec."""
    return text(cr, "spec", "memcachedRef", "name")


def uses(cr: Object, cache: Object) -> bool:
    """Whether a MemcachedProxy refers to a Memcached, or pods of it still use it."""
    name, namespace = (text(cache, "metadata", each) for each in ("name", "namespace"))
    used = [text(each, "name") for each in objects(cr, "status", "caches")]
    return text(cr, "metadata", "namespace") == namespace and name in (cache_of(cr), *used)


def rings(cr: Object, pods: Iterable[Object]) -> list[Ring]:
    """The rings of the pods, the most frequent first; without a valid one, those in the status."""
    found = Counter(filter(_is_valid, map(_annotated, pods)))
    return [Ring(*key[:2], number, key[2]) for key, number in found.most_common()] or _reported(cr)


def _annotated(pod: Object) -> tuple[str, int, Move | None]:
    """The Memcached and the slots in the annotation of a pod; 0 slots without a valid number or phase."""
    name, _, rest = text(pod, "metadata", "annotations", RING).partition("/")
    usage = rest.partition("/")[2]
    if (move := scaling.move_of(usage)) is not None:
        return name, move.slots, move
    return name, int(usage) if _NUMBER.fullmatch(usage) else 0, None


def _is_valid(ring: tuple[str, int, Move | None]) -> bool:
    """Whether a ring can be one of the operator: anyone who can change a pod can write its annotations."""
    name, slots, _ = ring
    return _NAME.fullmatch(name) is not None and 0 < slots <= MAX_SLOTS


def _reported(cr: Object) -> list[Ring]:
    used = (
        (text(each, "name"), integer(each, "servers") or 0, scaling.move_of(text(each, "ring")))
        for each in objects(cr, "status", "caches")
    )
    return [Ring(name, slots, 0, move) for name, slots, move in used if _is_valid((name, slots, move))]


def slots(cr: Object, cache: Object | None) -> str:
    """The slots of the Memcached of the spec that are in use, and their number if it is known: `3/4`.

    In a phase of a change of size, those before and after it: `3→4`.
    """
    name = cache_of(cr)
    ring = next((ring for ring in _reported(cr) if ring.cache == name), Ring(name, 0, 0))
    if ring.move is not None:
        return f"{ring.move.source}→{ring.move.target}"
    servers = [] if scaling.document(cache or {}) else strings(cache or {}, "status", "servers")
    return f"{ring.slots}/{len(servers)}" if servers else str(ring.slots or "-")


def size(cr: Object) -> int:
    """The number of proxies in the spec."""
    found = integer(cr, "spec", "size")
    return SIZE if found is None else found


def pods(cr: Object) -> str:
    """The ready proxies, and their number in the spec: `2/2`."""
    there, wanted = ready_pods(cr, size(cr))
    return f"{there}/{wanted}"


def problem(cr: Object) -> str:
    """What is wrong, as a sentence: of the most important condition. Empty if nothing is."""
    found = {each.type: each for each in conditions.conditions(cr)}
    listed = [found[kind] for kind in ("Degraded", "Available", "Progressing") if kind in found]
    messages = [each.message for each in listed if not each.healthy]
    return conditions.unobserved(cr) or next(iter(messages), "") or _known_problem(cr)


def _known_problem(cr: Object) -> str:
    release = images.official_release(text(cr, "spec", "image"))
    corrected = ".".join(map(str, PROXY))
    return f"known problems of its image: set spec.image to release {corrected}" if () < release < PROXY else ""


def remedies(cr: Object, shell: Shell) -> dict[str, str]:
    """The actions by type of condition."""
    found = conditions.remedies(cr, shell, waiting_is_useless=False)
    paused = [each.type for each in conditions.conditions(cr) if each.reason == "Paused" and not each.healthy]
    is_paused = mapping(cr, "spec", "rollout").get("paused") is True
    return {**found, **dict.fromkeys(paused, RESUME if is_paused else ENDED)}


def document(cr: Object, shell: Shell) -> dict[str, Any]:
    """A MemcachedProxy as JSON."""
    actions = remedies(cr, shell)
    return {
        "namespace": text(cr, "metadata", "namespace"),
        "name": text(cr, "metadata", "name"),
        "ready": conditions.is_ready(cr),
        "memcached": cache_of(cr),
        "image": text(cr, "spec", "image"),
        "size": size(cr),
        "readyReplicas": integer(cr, "status", "readyReplicas"),
        "address": text(cr, "status", "address"),
        "caches": [{"name": ring.cache, "servers": ring.slots} for ring in _reported(cr)],
        "conditions": [conditions.document(each, actions.get(each.type, "")) for each in conditions.conditions(cr)],
        "problem": problem(cr),
    }


def ordered(crs: Iterable[Object]) -> Sequence[Object]:
    """Those that are not ready first, then by namespace and name."""
    return sorted(
        crs, key=lambda cr: (conditions.is_ready(cr), *(text(cr, "metadata", each) for each in ("namespace", "name")))
    )
