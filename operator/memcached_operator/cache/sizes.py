"""The size of a reconcile, which anyone decides: decoded and planned, objects take up to 30 times as much memory."""

from collections.abc import Mapping, Sequence

from memcached_operator.cache.cache import Cache
from memcached_operator.kube.resource import Key, Resource


class Sizes:
    """The bytes as JSON that a reconcile of an object decodes. `owns`: the resources of the children, by kind."""

    def __init__(self, cache: Cache, owns: Mapping[Resource, Sequence[Resource]]) -> None:
        self._cache = cache
        self._owns = owns

    def of(self, key: Key) -> int:
        """The bytes of a custom resource and of its children; 0 if it is not known."""
        children = (Key(resource, key.namespace, key.name) for resource in self._owns[key.resource])
        return sum(map(self._cache.bytes_of, (key, *children)))
