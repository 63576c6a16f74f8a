"""A change of the size of a cache in phases: its state, and where the proxies look for keys that move."""

import re
from dataclasses import dataclass
from typing import Any, Final

from kubectl_memcached.model import units
from kubectl_memcached.model.objects import Object, integer, mapping, text

MAX_SLOTS: Final = 1000
"""The largest size of a Memcached with slots. A larger number in an annotation is invalid."""
PREPARE, MOVE, FINISH = "Prepare", "Move", "Finish"
PHASES: Final = ("Wait", PREPARE, MOVE, FINISH, "Plain")
"""The phases of a change in their order."""
FIELDS: Final = ("from", "to", "phase", "since", "until", "waitingFor")
"""The fields of `status.scaling` in a document; null if one is absent."""
ROUTES: Final = {
    PREPARE: "in {old}, and then in {new} if it is missing. They write it to {old}, and delete it in {new}.",
    MOVE: "in {new}, and then in {old} if it is missing. They write it to {new}, and delete it in {old}.",
    FINISH: "in {new}. They write it to {new}, and delete it in {old}.",
}
"""Where the proxies look for a key that moves, by the phases in which it has two places."""
_NUMBER: Final = r"[1-9][0-9]{0,3}"
_USAGE: Final = re.compile(rf"({_NUMBER})>({_NUMBER})/({'|'.join(ROUTES)})/[1-9][0-9]{{0,11}}", re.ASCII)


@dataclass(frozen=True)
class Move:
    """A phase in which keys have two places. `source`, `target`: the number of slots before and after the change."""

    source: int
    target: int
    phase: str

    @property
    def slots(self) -> int:
        """The number of slots that proxies use."""
        return max(self.source, self.target)

    @property
    def written(self) -> int:
        """The number of slots over which writes are distributed."""
        return self.source if self.phase == PREPARE else self.target

    def places(self, key: str, old: str, new: str) -> str:
        """Where the proxies look for a key that moves, as sentences. `old`, `new`: the two places."""
        return f"They look for {key} {ROUTES[self.phase].format(old=old, new=new)}"

    def __str__(self) -> str:
        return f"phase {self.phase} of a change from {self.source} to {self.target} slots"


def move_of(usage: str) -> Move | None:
    """The phase in the ring of a proxy, `FROM>TO/PHASE/CHANGE`; None for another text."""
    found = _USAGE.fullmatch(usage)
    if found is None:
        return None
    source, target = int(found[1]), int(found[2])
    return Move(source, target, found[3]) if source != target and max(source, target) <= MAX_SLOTS else None


def document(cr: Object) -> dict[str, Any]:
    """The change of a Memcached as a part of a JSON document; nothing without one."""
    scaling = mapping(cr, "status", "scaling")
    return {"scaling": {name: scaling.get(name) for name in FIELDS}} if scaling else {}


def sentences(cr: Object, now: float) -> list[str]:
    """The change of a Memcached in lines; nothing without one. `now`: seconds since 1970."""
    scaling = mapping(cr, "status", "scaling")
    if not scaling:
        return []
    phase, waiting = text(scaling, "phase"), text(scaling, "waitingFor")
    number = f", {PHASES.index(phase) + 1} of {len(PHASES)}" if phase in PHASES else ""
    begun, end = units.seconds(text(scaling, "since")), units.seconds(text(scaling, "until"))
    parts = [
        f"changes from {integer(scaling, 'from')} to {integer(scaling, 'to')} slots: phase {phase}{number}",
        *([f"for {units.duration(now - begun)}"] if begun is not None else []),
        *([f"ends in {units.duration(end - now)}"] if end is not None and end > now else []),
    ]
    return [", ".join(parts), *([f"waits: {waiting}"] if waiting else [])]
