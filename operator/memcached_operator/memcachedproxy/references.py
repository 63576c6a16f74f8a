"""The Memcached that a MemcachedProxy names: what is read of it, and whether memcached's proxy can use it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from memcached_api import conditions as c
from memcached_api.image import MAX_LENGTH as MAX_IMAGE_LENGTH
from memcached_api.image import official_release
from memcached_api.memcachedproxy.limits import (
    DEFAULT_ITEM_SIZE,
    MAX_ITEM_SIZE,
    MIN_SERVER_RELEASE,
    server_connections,
)
from memcached_api.quantity import parse_quantity
from memcached_api.validation.common_rules import LABEL, matches
from memcached_api.values import is_array, is_integer, is_object, nested_field
from memcached_operator.engine.reporting.lists import failure
from memcached_operator.findings.finding import Problem
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Object, Resource, nested_list, nested_map
from memcached_operator.kube.selectors import Selector
from memcached_operator.parts.ring import Move, Ring, Use, move_of, moving
from memcached_operator.world.kind import Reference
from memcached_operator.world.knowledge import State
from memcached_operator.world.snapshot import Snapshot

MEMCACHEDS: Final = Resource("cache.example.com", "v1", "Memcached", "memcacheds")
"""A kind imports no other one. tests/unit/memcachedproxy/test_references.py compares it with that of Memcached."""

RELEASE: Final = ".".join(map(str, MIN_SERVER_RELEASE))
_ADDRESS: Final = re.compile(r"(?P<host>[a-z0-9]([-.a-z0-9]*[a-z0-9])?):(?P<port>[0-9]{1,5})", re.ASCII)


@dataclass(frozen=True)
class Slots:
    """The addresses of slots: `NAME-NUMBER.DOMAIN:PORT`."""

    name: str
    domain: str
    port: int

    def address(self, slot: int) -> str:
        """The address of a slot, as in `status.servers`."""
        return f"{self.name}-{slot}.{self.domain}:{self.port}"


@dataclass(frozen=True)
class Cache:
    """What plans read of a Memcached.

    `created`: the time in its metadata. `slots`: the form of the published addresses; None until they are published.
    `servers`: their number without the slots that the spec removes, because their pods may be deleted at once. `ready`:
    whether that many pods are ready, for the current spec. `serves`: whether at least one pod is. `started`: whether
    its condition Available is True. `available`: whether that is not False. `paused`: whether its pods may have an
    earlier spec. `item_size`: the largest item, in bytes. `connections`: the clients that each server accepts.
    `image`: of the spec; empty without one.
    `warm`: whether its size changes in phases. `move`: the phase with two places of such a change; None in another one.
    `clients`: the clients that its NetworkPolicy admits; None admits all.
    """

    uid: str
    created: str
    deleted: bool
    pooled: bool
    has_passwords: bool
    has_only_tls: bool
    image: str
    clients: tuple[Object, ...] | None
    slots: Slots | None
    servers: int
    ready: bool
    serves: bool
    started: bool
    available: bool
    paused: bool
    item_size: int
    connections: int
    warm: bool
    move: Move | None

    def ring(self, name: str) -> Ring:
        """The slots over which proxies should distribute keys. `name`: that of the Memcached."""
        return Ring(name, self.uid, self.servers) if self.move is None else moving(name, self.uid, self.move)


def names(obj: Object) -> Iterator[str]:
    """The names of the Memcached of the spec, if it is valid, and of those that pods still use."""
    used = (each.get("name") for each in nested_list(obj, "status", "caches"))
    named = (nested_field(obj, "spec", "memcachedRef", "name"), *used)
    yield from dict.fromkeys(name for name in named if isinstance(name, str) and matches(LABEL, name))


def reads(obj: Object) -> Cache:
    """What plans read of a Memcached, whose spec may be invalid."""
    spec, status, meta = nested_map(obj, "spec"), nested_map(obj, "status"), obj["metadata"]
    addresses, ready = status.get("servers"), status.get("readyReplicas")
    slots = _slots(meta["name"], addresses)
    servers, size = len(addresses) if slots is not None and is_array(addresses) else 0, spec.get("size")
    conditions = nested_list(obj, "status", "conditions")
    available = next((each.get("status") for each in conditions if each["type"] == c.AVAILABLE), None)
    is_current = status.get("observedGeneration") == meta.get("generation")
    tls, image = spec.get("tls"), spec.get("image")
    warm, phases = nested_field(spec, "scaling", "warm") is not None, status.get("scaling") is not None
    return Cache(
        uid=meta.get("uid", ""),
        created=meta.get("creationTimestamp") or "",
        deleted=meta.get("deletionTimestamp") is not None,
        pooled=spec.get("identity") != "Stable",
        has_passwords=spec.get("auth") is not None,
        has_only_tls=tls is not None and nested_field(tls, "plaintext") != "Enabled",
        image=image if isinstance(image, str) else "",
        clients=_clients(spec.get("networkPolicy")),
        slots=slots,
        servers=min(servers, int(size)) if not (warm or phases) and is_integer(size) and size > 0 else servers,
        ready=is_current and is_integer(ready) and ready >= servers,
        serves=is_integer(ready) and ready > 0,
        started=available == c.TRUE,
        available=available != c.FALSE,
        paused=nested_field(spec, "rollout", "paused") is True,
        item_size=_item_size(nested_field(spec, "cache", "maxItemSize")),
        connections=_connections(nested_field(spec, "cache")),
        warm=warm or phases,
        move=_move(status.get("scaling")),
    )


def shows(obj: Object) -> Mapping[str, Use]:
    """What a Memcached reads of a MemcachedProxy: the slots in use, by the name of the Memcached."""
    return {each["name"]: Use(each["servers"], each.get("ring", "")) for each in nested_list(obj, "status", "caches")}


REFERENCE: Final[Reference[Cache]] = Reference(MEMCACHEDS, names, reads, shows)


def _slots(name: str, addresses: Any) -> Slots | None:
    """The form of addresses. None if they have another one: users with a right on the status can write it."""
    first = addresses[0] if is_array(addresses) and addresses else None
    match = _ADDRESS.fullmatch(first) if isinstance(first, str) else None
    if match is None:
        return None
    found = Slots(name, match["host"].removeprefix(f"{name}-0."), int(match["port"]))
    return found if addresses == [found.address(slot) for slot in range(len(addresses))] else None


def _move(scaling: object) -> Move | None:
    """The phase in `status.scaling`, which users with a right on the status can write."""
    source, target, phase, change = (nested_field(scaling, name) for name in ("from", "to", "phase", "change"))
    if not (is_integer(source) and is_integer(target) and is_integer(change) and isinstance(phase, str)):
        return None
    return move_of(int(source), int(target), phase, int(change))


def _item_size(value: Any) -> int:
    """`maxItemSize` in bytes; the default if it is absent or invalid."""
    try:
        size = int(parse_quantity(value))
    except ValueError:
        return DEFAULT_ITEM_SIZE
    return size if 0 < size <= MAX_ITEM_SIZE else DEFAULT_ITEM_SIZE


def _connections(cache: object) -> int:
    """The clients that a server with this `spec.cache` accepts; with the defaults for fields that are invalid."""
    numbers = (nested_field(cache, field) for field in ("maxConnections", "threads"))
    return server_connections(*(int(each) if is_integer(each) and each > 0 else None for each in numbers))


def _clients(policy: object) -> tuple[Object, ...] | None:
    if not is_object(policy):
        return None
    peers = policy.get("from")
    return tuple(filter(is_object, peers)) if is_array(peers) else ({"podSelector": {}},)


def cache_of(snapshot: Snapshot, name: str) -> Cache | None:
    """The Memcached with this name in the namespace; None if it does not exist."""
    return snapshot.named(REFERENCE, name)


def is_known(snapshot: Snapshot, cache: Cache | None) -> bool:
    """Whether it is known if the Memcached exists. `cache`: as `cache_of` it."""
    return cache is not None or snapshot.known(MEMCACHEDS).state is not State.UNLISTED


def unavailable(name: str, cache: Cache) -> Iterator[Problem]:
    """The problem that the Memcached does not serve. Proxies that run do not either."""
    if not cache.available:
        # Without the number of pods: each change of it would write the status of every proxy.
        text = f"Memcached {name} is not available; see its conditions"
        yield Problem(c.WAITING_FOR_MEMCACHED, text)


def obstacle(snapshot: Snapshot, name: str, cache: Cache | None) -> Problem | None:
    """Why the proxies cannot use the Memcached with this name now, with the remedy; None if they can."""
    known = snapshot.known(MEMCACHEDS)
    if not is_known(snapshot, cache):
        cause = f": {failure(MEMCACHEDS, snapshot.namespace, known)}" if known.has_failed else ""
        return Problem(c.WAITING_FOR_MEMCACHED, f"Memcached {name} is not known yet, so nothing is changed{cause}")
    if known.state is State.NOT_SERVED:
        return Problem(
            c.REFERENCE_NOT_FOUND,
            "The API server does not serve Memcached of cache.example.com; install its CustomResourceDefinition",
        )
    if cache is None or cache.deleted:
        state = "is being deleted" if cache else f"does not exist in namespace {snapshot.cr['metadata']['namespace']}"
        remedy = "create it, or correct spec.memcachedRef.name"
        return Problem(c.REFERENCE_NOT_FOUND, f"Memcached {name} {state}; {remedy}")
    text = _unsuitable(cache)
    if text:
        return Problem(c.REFERENCE_INVALID, f"Memcached {name} {text}")
    if cache.slots is None:
        # No problem: the operator writes them next.
        return Problem(c.ROLLING_OUT, f"Memcached {name} has not published the addresses of its slots yet")
    return None


def _unsuitable(cache: Cache) -> str:
    """Why memcached's proxy cannot use a Memcached, with the remedy; empty if it can."""
    release = official_release(cache.image, "memcached")
    if cache.pooled:
        remedy = "Create a second Memcached with identity: Stable, and refer to it"
        return f"has identity: Pooled; a proxy needs slots. {remedy}"
    if cache.has_passwords:
        return (
            "requires passwords; memcached's proxy cannot log in to servers. Refer to a Memcached without spec.auth, "
            "and admit only the proxies with its spec.networkPolicy"
        )
    if cache.has_only_tls:
        return (
            "serves only TLS; the official image's proxy cannot connect to servers with TLS. Create a second Memcached "
            "without TLS that admits only the proxies with its spec.networkPolicy, and refer to it. Or set its "
            "spec.tls.plaintext: Enabled and another spec.tls.port, which clients with TLS must then use. If this "
            "replaces its pods, their items are lost"
        )
    if release is not None and release < MIN_SERVER_RELEASE:
        found = ".".join(map(str, release))
        return (
            f"runs memcached {found}; a proxy needs servers of at least {RELEASE}. Set its spec.image. If this "
            "replaces its pods, their items are lost"
        )
    return ""


def notices(name: str, cache: Cache, labels: Mapping[str, str]) -> Iterator[str]:
    """What may prevent the proxies from using a Memcached. `labels`: of their pods."""
    if official_release(cache.image, "memcached") is None:
        shown = texts.name(cache.image, MAX_IMAGE_LENGTH)
        image = f"the image {shown}, whose release is not known" if cache.image else "no image in spec.image"
        yield f"Memcached {name} has {image}; a proxy needs servers of memcached {RELEASE} or later"
    if cache.paused:
        yield (
            f"The rollout of Memcached {name} is paused, so its pods may not have its spec yet, such as tls or auth. "
            "Set its spec.rollout.paused to false. If this replaces its pods, their items are lost"
        )
    if cache.clients is not None and not any(_may_admit(peer, labels) for peer in cache.clients):
        selector = ", ".join(f"{key}: {labels[key]}" for key in sorted(labels) if key.endswith(("/instance", "/name")))
        yield (
            f"spec.networkPolicy.from of Memcached {name} does not admit these proxies. Add the entry "
            f"{{podSelector: {{matchLabels: {{{selector}}}}}}}"
        )


def _may_admit(peer: Object, labels: Mapping[str, str]) -> bool:
    """Whether a client of a NetworkPolicy can be a pod with these labels in the same namespace.

    The labels of the namespace and the addresses of pods are not known.
    """
    if peer.get("ipBlock") is not None:
        return True
    selector = peer.get("podSelector")
    return selector is None or Selector(selector).selects(labels)
