"""What plans read of the objects of others is decoded once per change."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from memcached_operator.engine.kind import ReconciledKind
from memcached_operator.kube.resource import POD_DISRUPTION_BUDGETS, Key, Object
from memcached_operator.world import views as module
from memcached_operator.world.retention import Retention
from memcached_operator.world.store import Store
from memcached_operator.world.views import Views
from unit.world.test_store import KIND, budget


@dataclass
class Counted:
    """Views of namespaces, each with one object, and the names of the objects whose views were made."""

    size: int
    made: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.views = Views[str](self.view)

    @property
    def json(self) -> bytes:
        """The object as JSON."""
        return b"x" * self.size

    def object(self) -> Object:
        """No content."""
        return {}

    def view(self, key: Key, _: Object) -> str:
        """The name of an object."""
        self.made.append(key.name)
        return key.name

    def read(self, *namespaces: str) -> list[str]:
        """Read these namespaces. Returns the names of the objects whose views had to be made."""
        self.made.clear()
        for name in namespaces:
            key = Key(POD_DISRUPTION_BUDGETS, name, name)
            assert self.views.of(name, lambda key=key: {key: self}) == {key: name}
        return [*self.made]


def test_views_of_a_namespace_that_was_not_read_for_the_longest_time_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_VIEWS", 100)
    counted = Counted(size=40)
    assert counted.read("a", "b", "a", "c", "a") == ["a", "b", "c"]
    assert counted.read("a", "c") == []
    assert counted.read("b") == ["b"]
    assert counted.read("c", "b") == []
    assert counted.read("a") == ["a"]


def test_views_of_one_namespace_are_kept_whatever_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_VIEWS", 100)
    assert Counted(size=200).read("a", "a", "b", "b", "b") == ["a", "b"]


def test_only_what_has_changed_is_decoded_again() -> None:
    made: list[str] = []

    class Recorded(Retention):
        """Records the views that are made."""

        def view(self, key: Key, obj: Object) -> Any:
            """The view of an object."""
            made.append(key.name)
            return super().view(key, obj)

    def read() -> list[str]:
        made.clear()
        names = [key.name for key in cache.foreign(POD_DISRUPTION_BUDGETS, "test")]
        assert names == sorted(names)
        return [*made]

    kinds: list[ReconciledKind] = [KIND]
    cache = Store(Recorded(kinds))
    for name in "ab":
        cache.put(POD_DISRUPTION_BUDGETS, budget(name))
    assert (read(), read()) == (["a", "b"], [])
    cache.put(POD_DISRUPTION_BUDGETS, budget("other", namespace="other"))
    assert read() == []
    before = cache.foreign(POD_DISRUPTION_BUDGETS, "test")
    cache.put(POD_DISRUPTION_BUDGETS, budget("b", resourceVersion="2"))
    cache.put(POD_DISRUPTION_BUDGETS, budget("c"))
    assert read() == ["b", "c"]
    assert len(before) == 2, "a plan may still read it"
    cache.remove(Key(POD_DISRUPTION_BUDGETS, "test", "a"), 9)
    assert read() == []
    assert [key.name for key in cache.foreign(POD_DISRUPTION_BUDGETS, "test")] == ["b", "c"]
