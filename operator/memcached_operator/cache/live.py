"""Live reads of single objects, for when the cache may be stale."""

from memcached_operator.cache.cache import Cache, version_of
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import Key, Object


class StaleError(Exception):
    """A live read shows that the snapshot is out of date. The cache has the new state: reconcile again."""


async def get_live(client: ApiClient, cache: Cache, key: Key) -> Object | None:
    """Read an object from the API server and update the cache. Returns None if it does not exist. Raises ApiError."""
    cache.clear_tombstone(key)
    live = await client.get(key)
    if live is None:
        known = cache.get(key)
        if known is not None:
            cache.remove(key, version_of(known))
        return None
    live.setdefault("apiVersion", key.resource.api_version)
    live.setdefault("kind", key.resource.kind)
    cache.put(key.resource, live, from_live_read=True)
    return cache.get(key)


async def ensure_exists(client: ApiClient, cache: Cache, key: Key, seen: Object) -> None:
    """Check with the API server that `seen` still exists, is not being deleted, and has the newest spec.

    Raises StaleError or ApiError.
    """
    live = await get_live(client, cache, key)
    if live is None or live["metadata"].get("deletionTimestamp") or _identity(live) != _identity(seen):
        raise StaleError


def _identity(obj: Object) -> tuple[str, int | None]:
    return obj["metadata"]["uid"], obj["metadata"].get("generation")
