"""The size of a reconcile, which anyone decides: decoded and planned, objects take up to 30 times as much memory."""

from collections.abc import Iterable

from memcached_operator.cache.cache import Cache
from memcached_operator.kind import Controller
from memcached_operator.kube.resource import Key


class Sizes:
    """The bytes as JSON that a reconcile of an object decodes."""

    def __init__(self, cache: Cache, kinds: Iterable[Controller]) -> None:
        self._cache = cache
        self._kinds = {kind.resource: kind for kind in kinds}

    def of(self, key: Key) -> int:
        """The bytes of a custom resource and of its children; 0 if it is not known."""
        children = (Key(resource, key.namespace, key.name) for resource in self._kinds[key.resource].owns)
        return sum(map(self._cache.bytes_of, (key, *children)))
