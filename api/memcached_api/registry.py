"""The kinds of the API. The webhooks serve them; `make manifests generate` derives files in config/ and docs/."""

from typing import Any, Final

from memcached_api.appservice.types import APPSERVICE
from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY

KINDS: Final[tuple[Kind[Any], ...]] = (MEMCACHED, MEMCACHEDPROXY, APPSERVICE)
"""Every kind, in the order of generated files."""


def named(text: str) -> tuple[Kind[Any], ...]:
    """The kinds with the names in a text such as `memcached,appservice`; all kinds if it names none.

    Case does not matter. Raises ValueError for a name of no kind, and for a kind without one to which it refers.
    """
    names = {name.strip().lower() for name in text.split(",") if name.strip()}
    known = {kind.name.lower(): kind for kind in KINDS}
    if unknown := sorted(names - known.keys()):
        raise ValueError(f"{unknown[0]!r}: unknown kind; use one or more of {', '.join(known)}")
    for kind in (known[name] for name in sorted(names)):
        if lacking := [each.lower() for each in kind.refers_to if each.lower() not in names]:
            raise ValueError(f"{kind.name.lower()!r}: its objects refer to objects of {lacking[0]}; add this kind")
    return tuple(kind for name, kind in known.items() if name in names) or KINDS
