"""The slots of a Memcached over which the proxies distribute keys, and the rule that changes their number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memcached_api.annotations import RING_ANNOTATION
from memcached_api.validation.common_rules import LABEL, MAX_NAME_LENGTH, matches
from memcached_operator.kube.resource import nested_map

MAX_SLOTS: Final = 1000
"""The most slots of a Memcached (`memcached_api.memcached.rules.spec`). A kind imports no other one."""

MAX_UID: Final = 63
"""Characters of a uid: anyone who can create a pod writes its ring, and many rings are kept at the same time."""


@dataclass(frozen=True)
class Ring:
    """The first `servers` slots of the Memcached with this name and uid."""

    name: str
    uid: str
    servers: int

    def __str__(self) -> str:
        return f"{self.name}/{self.uid}/{self.servers}"

    def is_of(self, other: "Ring") -> bool:
        """Whether both rings are of the same Memcached."""
        return (self.name, self.uid) == (other.name, other.uid)


def ring_of(obj: Mapping[str, Any]) -> Ring | None:
    """The ring of a pod template, or of a pod as the API server returns it; None without a valid one."""
    return ring_in(nested_map(obj, "metadata", "annotations"))


def ring_in(annotations: Mapping[str, str]) -> Ring | None:
    """The ring in annotations; None without a valid one, because another client can change it."""
    name, _, rest = annotations.get(RING_ANNOTATION, "").partition("/")
    uid, _, servers = rest.partition("/")
    is_number = servers.isdecimal() and servers.isascii() and len(servers) <= len(str(MAX_SLOTS))
    is_name = len(name) <= MAX_NAME_LENGTH and matches(LABEL, name)
    if not (is_name and is_number and len(uid) <= MAX_UID and 0 < int(servers) <= MAX_SLOTS):
        return None
    return Ring(name, uid, int(servers))


def next_ring(now: Ring | None, wanted: Ring, *, ready: bool) -> Ring:
    """The ring that the pods should have: a smaller one at once, a larger one when all of its slots are ready.

    So proxies that serve never get another slot that has never run. Without a ring of this Memcached, as after it was
    deleted and created again, they get all of its slots at once: no request is served before anyway. `now`: that of the
    pod template; None without one. `ready`: whether all slots of `wanted` are.
    """
    if now is None or not now.is_of(wanted) or wanted.servers <= now.servers or ready:
        return wanted
    return now
