"""Where the proxies of a MemcachedProxy send keys: for `find` and `ring`."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import memcached, with_pods
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.proxies import rings
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.objects import Object, full_name, text
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.proxies import Ring, cache_of
from kubectl_memcached.model.shell import Shell
from kubectl_memcached.ring.proxies import LONGEST, in_base64, moved, other_sizes, slot_of
from kubectl_memcached.ring.sentences import percent

MISSING: Final = "the pod does not exist"


@dataclass(frozen=True)
class Target:
    """The slot to which proxies with a ring send a key. `other`: while the key moves, its other slot, or None."""

    ring: Ring
    slot: int
    other: int | None = None

    @property
    def pod(self) -> str:
        """The name of its pod."""
        return self._pod(self.slot)

    @property
    def pods(self) -> list[str]:
        """The names of the pods of both slots, or of its only one."""
        return [self.pod, *([] if self.other is None else [self._pod(self.other)])]

    def place(self) -> str:
        """The slot of a key that does not move."""
        slots = self.ring.slots if self.ring.move is None else self.ring.move.written
        return f"slot {self.slot} of {slots} of Memcached {self.ring.cache}, {self.pod}"

    def places(self) -> str:
        """Where proxies in a phase look for the key, as sentences; empty if they send it to one slot only."""
        move = self.ring.move
        if move is None or self.other is None:
            return ""
        new, old = self.pods if move.written == move.target else reversed(self.pods)
        return move.places("this key", old, new)

    def document(self) -> dict[str, Any]:
        """As a part of a JSON document."""
        return {
            "memcached": self.ring.cache,
            "slots": self.ring.slots,
            "slot": self.slot,
            "pod": self.pod,
            "proxies": self.ring.pods,
            **({"otherPod": self._pod(self.other)} if self.other is not None else {}),
            **_move_document(self.ring),
        }

    def _pod(self, slot: int) -> str:
        return f"{self.ring.cache}-{slot}"


@dataclass(frozen=True)
class Routed:
    """A key of a MemcachedProxy. `name`: its namespace and name. `targets`: the most frequent one first.

    `pods`: those of the slots. `missing`: the names of pods that do not exist. `hint`: how to search all pods.
    """

    name: str
    targets: Sequence[Target]
    pods: list[Pod]
    missing: list[str]
    hint: str

    def sentences(self) -> list[str]:
        """The slot, or the slots during a rollout."""
        return [self._sentence(each) for each in self.targets]

    @property
    def is_moving(self) -> bool:
        """Whether the key has two slots."""
        return any(each.other is not None for each in self.targets)

    def _sentence(self, target: Target) -> str:
        is_only, ring = len(self.targets) == 1, target.ring
        if places := target.places():
            subject = f"The proxies of {self.name} are" if is_only else _proxies(self.name, ring, "are")
            return f"{subject} in {ring.move} of Memcached {ring.cache}. {places}"
        subject = f"The proxies of {self.name} send" if is_only else _proxies(self.name, ring, "send")
        return f"{subject} this key to {target.place()}."

    def document(self) -> dict[str, Any]:
        """As a part of a JSON document."""
        return {
            "proxy": self.name,
            "routes": [each.document() for each in self.targets],
        }


def of_key(kubectl: Kubectl, cr: Object, key: str, *, base64: bool) -> Routed:
    """The slots of a key. `cr`: a MemcachedProxy. `base64`: whether clients send the key so. Raises PluginError."""
    shell = Shell(text(cr, "metadata", "namespace"), tuple(kubectl.cluster_options))
    hint = f"{shell.kubectl('memcached', 'find', *map(shlex.quote, (cache_of(cr), key)))} asks all pods of the cache."
    sent = in_base64(key.encode()) if base64 else key.encode()
    if len(sent) > LONGEST:
        form = " in base64" if base64 else ""
        raise PluginError(f"The slot of keys of more than {LONGEST} bytes{form} is not known. {hint}", ExitCode.USAGE)
    targets = [_target(ring, sent) for ring in rings(kubectl, cr)]
    wanted = dict.fromkeys((each.ring.cache, pod) for each in targets for pod in each.pods)
    known = {pod.name: pod for cache in dict.fromkeys(cache for cache, _ in wanted) for pod in _pods(kubectl, cache)}
    names = [pod for _, pod in wanted]
    found = [known[name] for name in names if name in known]
    return Routed(full_name(cr), targets, found, [name for name in names if name not in known], hint)


def _target(ring: Ring, key: bytes) -> Target:
    if ring.move is None:
        return Target(ring, slot_of(key, ring.slots))
    old, new = (slot_of(key, slots) for slots in (ring.move.source, ring.move.target))
    if old == new:
        return Target(ring, old)
    return Target(ring, new, old) if ring.move.written == ring.move.target else Target(ring, old, new)


def _pods(kubectl: Kubectl, cache: str) -> list[Pod]:
    """The pods of a Memcached; none if it is deleted. Raises PluginError."""
    try:
        cr = memcached(kubectl, cache)
    except PluginError as error:
        if error.code != ExitCode.MISSING:
            raise
        return []
    return with_pods(kubectl, cr).pods


def show_ring(kubectl: Kubectl, cr: Object, *, as_json: bool) -> None:
    """Print the share of each slot, and the effect of other sizes. `cr`: a MemcachedProxy. Raises PluginError."""
    found = rings(kubectl, cr)
    if as_json:
        output.print_json({"proxy": full_name(cr), "rings": [_ring_document(ring) for ring in found]})
        return
    console = output.console()
    for number, ring in enumerate(found):
        sentence = _ring_sentence(full_name(cr), ring, is_only=len(found) == 1)
        output.show(console, *([""] if number else []), sentence, "")
        _ring_tables(console, ring)
    if len(found) > 1:
        different = "phases" if any(ring.move for ring in found) else "slots"
        output.show(console, "", f"The proxies use different {different}: a rollout is not complete.")


def _ring_sentence(name: str, ring: Ring, *, is_only: bool) -> str:
    """How proxies distribute keys. `name`: of the MemcachedProxy."""
    verb = "distribute" if ring.move is None else "are"
    subject = f"The proxies of {name} {verb}" if is_only else _proxies(name, ring, verb)
    if ring.move is None:
        servers = "1 slot" if ring.slots == 1 else f"{ring.slots} slots"
        return f"{subject} keys over {servers} of Memcached {ring.cache}."
    move = ring.move
    share = percent(abs(move.target - move.source), move.slots)
    places = move.places("such a key", "its old slot", "its new slot")
    return f"{subject} in {move} of Memcached {ring.cache}, in which {share} of the keys move. {places}"


def _ring_tables(console: Console, ring: Ring) -> None:
    if ring.move is not None:
        sizes = (ring.move.source, ring.move.target)
        rows = [[f"{ring.cache}-{slot}", *(_share(slot, size) for size in sizes)] for slot in range(ring.slots)]
        columns = ("SLOT", "OLD SHARE", "NEW SHARE")
        output.show(console, *output.tables(columns, rows, console.width, right=columns[1:]))
        return
    share = percent(1, ring.slots)
    shares = [[f"{ring.cache}-{slot}", share] for slot in range(ring.slots)]
    output.show(console, *output.tables(("SLOT", "SHARE"), shares, console.width, right=["SHARE"]), "")
    sizes = [
        [str(size), percent(1, size), percent(abs(size - ring.slots), max(size, ring.slots)), _effect(ring, size)]
        for size in other_sizes(ring.slots)
    ]
    columns = ("OTHER SIZE", "SHARE", "KEYS MOVE", "WHICH")
    output.show(console, *output.tables(columns, sizes, console.width, right=columns[:3], folded=["WHICH"]))


def _share(slot: int, size: int) -> str:
    """The share of the keys of a slot; a dash if it is none of `size` slots."""
    return percent(1, size) if slot < size else "-"


def _effect(ring: Ring, size: int) -> str:
    """The keys that move, in words."""
    if size < ring.slots:
        return f"those of {ring.cache}-{size}, to all other slots"
    new = [f"{ring.cache}-{slot}" for slot in (ring.slots, size - 1)]
    return f"some of each slot, to {' … '.join(dict.fromkeys(new))}"


def _ring_document(ring: Ring) -> dict[str, Any]:
    slots = ring.slots if ring.move is None else ring.move.written
    return {
        "memcached": ring.cache,
        "proxies": ring.pods,
        "slots": [{"pod": f"{ring.cache}-{slot}", "share": round(1 / slots, 4)} for slot in range(slots)],
        **_move_document(ring),
        "otherSizes": [
            {"size": size, "share": round(1 / size, 4), "moved": round(moved(slots, size), 4)}
            for size in ([] if ring.move else other_sizes(slots))
        ],
    }


def _move_document(ring: Ring) -> dict[str, Any]:
    """The phase as a part of a document; nothing without one."""
    move = ring.move
    return {} if move is None else {"move": {"from": move.source, "to": move.target, "phase": move.phase}}


def _proxies(name: str, ring: Ring, verb: str) -> str:
    """The subject and the verb of a sentence about the proxies with a ring. `name`: of the MemcachedProxy."""
    if ring.pods != 1:
        return f"{ring.pods} proxies of {name} {verb}"
    return f"1 proxy of {name} {'is' if verb == 'are' else f'{verb}s'}"
