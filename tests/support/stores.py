"""A store for tests of what uses it, for which it does not matter what is kept."""

from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.world.kept_fields import Kept, whole
from memcached_operator.world.store import Store


class Everything:
    """Keeps every object whole."""

    def keep(self, store: Store, key: Key, obj: Object) -> Kept:
        """The whole object."""
        return Kept(whole(obj))

    def drops(self, resource: Resource, obj: Object) -> bool:
        """False: every object is read."""
        return False

    def only_newest_of(self, resource: Resource, obj: Object) -> None:
        """None: every object is kept."""

    def size(self, resource: Resource, obj: Object) -> int:
        """0: no resource is one of a kind."""
        return 0


def whole_store() -> Store:
    """An empty store that keeps every object whole."""
    return Store(Everything())
