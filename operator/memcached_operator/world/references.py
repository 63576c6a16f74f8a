"""Which custom resources name which others, and whom a change of one concerns."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.world.kind import Reference

ReferrersOf = Callable[[Key], Iterable[Key]]
"""The keys of the known objects that name an object."""


class Stored(Protocol):
    """A stored version of an object."""

    def object(self) -> Object:
        """Decode a new copy of the object."""
        ...


class References:
    """The references of all kinds, by the resource of the objects that name others: one for each resource they name."""

    def __init__(self, references: Mapping[Resource, Iterable[Reference[object]]]) -> None:
        self._of = {resource: tuple(found) for resource, found in references.items()}
        self._to: dict[Resource, dict[Resource, Reference[object]]] = {}
        for resource, found in self._of.items():
            for each in found:
                self._to.setdefault(each.resource, {})[resource] = each

    def naming(self, resource: Resource) -> Iterable[Resource]:
        """The resources whose objects can name those of a resource."""
        return self._to.get(resource, {}).keys()

    def named(self, key: Key, obj: Object) -> Iterator[Key]:
        """The keys of the objects that an object names."""
        for reference in self._of.get(key.resource, ()):
            yield from (Key(reference.resource, key.namespace, name) for name in dict.fromkeys(reference.names(obj)))

    def concerned(
        self, key: Key, before: Stored | None, after: Stored | None, referrers_of: ReferrersOf
    ) -> Iterator[Key]:
        """The objects whose plans read a part of an object that has changed.

        None: the object did not exist before, or does not exist any more.
        """
        to, of = self._to.get(key.resource, {}), self._of.get(key.resource, ())
        referrers = list(referrers_of(key)) if to else []
        if not referrers and not of:
            return  # most changes: nothing is decoded
        old, new = (None if each is None else each.object() for each in (before, after))
        for resource, reference in to.items():
            if reference.reads and _part(reference.reads, old) != _part(reference.reads, new):
                yield from (each for each in referrers if each.resource == resource)
        for reference in of:
            shown, shows = _shown(reference, old), _shown(reference, new)
            changed = (name for name in shown.keys() | shows.keys() if shown.get(name) != shows.get(name))
            yield from (Key(reference.resource, key.namespace, name) for name in changed)

    def read_by(self, key: Key, obj: Object, get: Callable[[Key], Object | None]) -> dict[Key, object]:
        """What the plans of an object read of the existing ones that it names."""
        return {
            Key(reference.resource, key.namespace, name): reference.reads(found)
            for reference in self._of.get(key.resource, ())
            if reference.reads
            for name in reference.names(obj)
            if (found := get(Key(reference.resource, key.namespace, name))) is not None
        }

    def shown_to(
        self, key: Key, referrers_of: ReferrersOf, shown_by: Callable[[Key, Callable[[Object], object]], object]
    ) -> dict[Key, object]:
        """What the plans of an object read of those that name it."""
        to = self._to.get(key.resource, {})
        referrers = sorted(referrers_of(key), key=str) if to else ()
        return {each: shown_by(each, to[each.resource].shows) for each in referrers}


def _part(reads: Callable[[Object], object], obj: Object | None) -> tuple[object, ...]:
    """What is read of an object, if it exists."""
    return () if obj is None else (reads(obj),)


def _shown(reference: Reference[object], obj: Object | None) -> dict[str, tuple[object, ...]]:
    """What an object shows to each object that it names, as `_part`."""
    return {} if obj is None else dict.fromkeys(reference.names(obj), _part(reference.shows, obj))
