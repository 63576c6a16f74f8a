"""A store for tests of what uses it, for which it does not matter what is kept."""

from typing import Any

from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.world.forms import Kept, whole
from memcached_operator.world.store import Store


class Everything:
    """Keeps every object whole, and observes no object of others."""

    def keep(self, store: Store, key: Key, obj: Object) -> Kept:
        """The whole object."""
        return Kept(whole(obj))

    def drops(self, resource: Resource, obj: Object) -> bool:
        """False: every object is read."""
        return False

    def only_newest_of(self, resource: Resource, obj: Object) -> None:
        """None: every object is kept."""

    def observes(self, resource: Resource) -> bool:
        """False: no object of others is read."""
        return False

    def view(self, key: Key, obj: Object) -> Any:
        """The object. It is not called, because no object is observed."""
        return obj

    def size(self, resource: Resource, obj: Object) -> int:
        """0: no resource is one of a kind."""
        return 0


def whole_store() -> Store:
    """An empty store that keeps every object whole."""
    return Store(Everything())
