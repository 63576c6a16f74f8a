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
    """The slot to which proxies with a ring send a key."""

    ring: Ring
    slot: int

    @property
    def pod(self) -> str:
        """The name of its pod."""
        return f"{self.ring.cache}-{self.slot}"


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
        first, *others = self.targets
        if not others:
            return [f"The proxies of {self.name} send this key to {_place(first)}."]
        return [f"{_proxies(self.name, each.ring, 'send')} this key to {_place(each)}." for each in self.targets]

    def document(self) -> dict[str, Any]:
        """As a part of a JSON document."""
        return {
            "proxy": self.name,
            "routes": [
                {
                    "memcached": each.ring.cache,
                    "slots": each.ring.slots,
                    "slot": each.slot,
                    "pod": each.pod,
                    "proxies": each.ring.pods,
                }
                for each in self.targets
            ],
        }


def of_key(kubectl: Kubectl, cr: Object, key: str, *, base64: bool) -> Routed:
    """The slots of a key. `cr`: a MemcachedProxy. `base64`: whether clients send the key so. Raises PluginError."""
    shell = Shell(text(cr, "metadata", "namespace"), tuple(kubectl.cluster_options))
    hint = f"{shell.kubectl('memcached', 'find', *map(shlex.quote, (cache_of(cr), key)))} asks all pods of the cache."
    sent = in_base64(key.encode()) if base64 else key.encode()
    if len(sent) > LONGEST:
        form = " in base64" if base64 else ""
        raise PluginError(f"The slot of keys of more than {LONGEST} bytes{form} is not known. {hint}", ExitCode.USAGE)
    targets = [Target(ring, slot_of(sent, ring.slots)) for ring in rings(kubectl, cr)]
    wanted = dict.fromkeys((each.ring.cache, each.pod) for each in targets)
    known = {pod.name: pod for cache in dict.fromkeys(cache for cache, _ in wanted) for pod in _pods(kubectl, cache)}
    names = [pod for _, pod in wanted]
    found = [known[name] for name in names if name in known]
    return Routed(full_name(cr), targets, found, [name for name in names if name not in known], hint)


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
        subject = f"The proxies of {full_name(cr)} distribute"
        if len(found) > 1:
            subject = _proxies(full_name(cr), ring, "distribute")
        servers = "1 slot" if ring.slots == 1 else f"{ring.slots} slots"
        sentence = f"{subject} keys over {servers} of Memcached {ring.cache}."
        output.show(console, *([""] if number else []), sentence, "")
        _ring_tables(console, ring)
    if len(found) > 1:
        output.show(console, "", "The proxies use different slots: a rollout is not complete.")


def _ring_tables(console: Console, ring: Ring) -> None:
    share = percent(1, ring.slots)
    shares = [[f"{ring.cache}-{slot}", share] for slot in range(ring.slots)]
    output.show(console, *output.tables(("SLOT", "SHARE"), shares, console.width, right=["SHARE"]), "")
    sizes = [
        [str(size), percent(1, size), percent(abs(size - ring.slots), max(size, ring.slots)), _effect(ring, size)]
        for size in other_sizes(ring.slots)
    ]
    columns = ("OTHER SIZE", "SHARE", "KEYS MOVE", "WHICH")
    output.show(console, *output.tables(columns, sizes, console.width, right=columns[:3], folded=["WHICH"]))


def _effect(ring: Ring, size: int) -> str:
    """The keys that move, in words."""
    if size < ring.slots:
        return f"those of {ring.cache}-{size}, to all other slots"
    new = [f"{ring.cache}-{slot}" for slot in (ring.slots, size - 1)]
    return f"some of each slot, to {' … '.join(dict.fromkeys(new))}"


def _ring_document(ring: Ring) -> dict[str, Any]:
    return {
        "memcached": ring.cache,
        "proxies": ring.pods,
        "slots": [{"pod": f"{ring.cache}-{slot}", "share": round(1 / ring.slots, 4)} for slot in range(ring.slots)],
        "otherSizes": [
            {"size": size, "share": round(1 / size, 4), "moved": round(moved(ring.slots, size), 4)}
            for size in other_sizes(ring.slots)
        ],
    }


def _place(target: Target) -> str:
    return f"slot {target.slot} of {target.ring.slots} of Memcached {target.ring.cache}, {target.pod}"


def _proxies(name: str, ring: Ring, verb: str) -> str:
    """The subject and the verb of a sentence about the proxies with a ring. `name`: of the MemcachedProxy."""
    return f"1 proxy of {name} {verb}s" if ring.pods == 1 else f"{ring.pods} proxies of {name} {verb}"
