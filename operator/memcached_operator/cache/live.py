"""Look at one object anew, where what was last seen of it cannot be."""

from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import Key, Object
from memcached_operator.cache.cache import Store, version_of


class GoneError(Exception):
    """The object that is worked on is no more, or is being deleted; the news of it is still on its way."""


async def look(client: Client, store: Store, key: Key) -> Object | None:
    """Read an object, and note in the store what is there; None where nothing is. Raises ApiError."""
    store.doubt(key)
    live = await client.get(key)
    if live is None:
        known = store.get(key)
        if known is not None:
            store.remove(key, version_of(known))
        return None
    live.setdefault("apiVersion", key.resource.api_version)
    live.setdefault("kind", key.resource.kind)
    store.put(key.resource, live)
    return store.get(key)


async def confirm(client: Client, store: Store, key: Key, seen: Object) -> None:
    """Make sure that the object that was seen is still there to be worked on. Raises GoneError, or ApiError."""
    live = await look(client, store, key)
    if live is None or live["metadata"]["uid"] != seen["metadata"]["uid"] or live["metadata"].get("deletionTimestamp"):
        raise GoneError
