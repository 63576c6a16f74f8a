"""Look at one object anew, where what was last seen of it cannot be."""

from memcached_operator.cache.cache import Cache, version_of
from memcached_operator.kube.client import Client
from memcached_operator.kube.resource import Key, Object


class DeletedError(Exception):
    """The object that is worked on is no more, or is being deleted; the news of it is still on its way."""


async def get_live(client: Client, cache: Cache, key: Key) -> Object | None:
    """Read an object, and note in the cache what is there; None where nothing is. Raises ApiError."""
    cache.clear_tombstone(key)
    live = await client.get(key)
    if live is None:
        known = cache.get(key)
        if known is not None:
            cache.remove(key, version_of(known))
        return None
    live.setdefault("apiVersion", key.resource.api_version)
    live.setdefault("kind", key.resource.kind)
    cache.put(key.resource, live)
    return cache.get(key)


async def ensure_exists(client: Client, cache: Cache, key: Key, seen: Object) -> None:
    """Make sure that the object that was seen is still there to be worked on. Raises DeletedError, or ApiError."""
    live = await get_live(client, cache, key)
    if live is None or live["metadata"]["uid"] != seen["metadata"]["uid"] or live["metadata"].get("deletionTimestamp"):
        raise DeletedError
