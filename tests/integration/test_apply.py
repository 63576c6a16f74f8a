"""Applies on a real API server: the values that it stores in another form, and those that it validates together.

The decisions are in tests/unit/reconcile, and what other clients do with children in the fault cases `drift`.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from integration.control_plane import ControlPlane, client_of
from memcached_api.images import Images
from memcached_operator.engine.reconciler import gather
from memcached_operator.engine.writes.apply import Applier
from memcached_operator.engine.writes.result import Result
from memcached_operator.kube.labels import SELECTOR
from memcached_operator.kube.resource import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Key,
    Object,
    Resource,
    key_of,
)
from memcached_operator.memcached.controller import MEMCACHEDS, memcached
from memcached_operator.world.snapshot import Snapshot
from memcached_operator.world.store import Store
from support.stores import whole_store

pytestmark = pytest.mark.server

OWNS = (DEPLOYMENTS, SERVICES)
IMAGE = "example.com/memcached:1"
KIND = memcached(Images(IMAGE))
CREATED = {"create deployments": 1, "create services": 1}


@dataclass
class Owner:
    """A Memcached in the API server, and the operator's cache of its children."""

    plane: ControlPlane
    cr: Object
    cache: Store = field(default_factory=whole_store)
    outcome: Result = field(default_factory=Result)

    def key(self, resource: Resource = DEPLOYMENTS) -> Key:
        """The key of a child."""
        return Key(resource, self.cr["metadata"]["namespace"], self.cr["metadata"]["name"])

    def live(self, resource: Resource = DEPLOYMENTS) -> Object:
        """A child as stored."""
        return self.plane.must_get(self.key(resource))

    def desired(self) -> list[Object]:
        """The desired children."""
        return list(KIND.plan(Snapshot(self.cr), datetime.now(UTC)).children or ())

    def spec(self, **spec: Any) -> None:
        """Change the object's spec."""
        self.cr = self.plane.change(key_of(MEMCACHEDS, self.cr), {"spec": spec})

    def apply(self, children: Iterable[Object] | None = None) -> dict[str, int]:
        """Apply the desired children; return the writes."""
        audit = self.plane.audit()
        wanted = self.desired() if children is None else children

        async def run() -> Result:
            async with client_of(self.plane.connection) as client:
                return await Applier(client, self.cache).apply_all(KIND, gather(self.cache, KIND, self.cr, {}), wanted)

        self.outcome = asyncio.run(run())
        return dict(audit.writes(self.cr["metadata"]["namespace"]))

    def relist(self, resources: Iterable[Resource] = OWNS) -> None:
        """Fill the cache from lists with the label selector, as after a restart."""
        self.cache = whole_store()

        async def run() -> None:
            async with client_of(self.plane.connection) as client:
                for resource in resources:
                    namespace = self.cr["metadata"]["namespace"]
                    listing = self.cache.listing(resource, namespace)
                    async for page in client.list(resource, namespace, SELECTOR):
                        listing.add(page.items, int(page.version))
                    listing.end()

        asyncio.run(run())

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Reason and message of the problems of the last apply."""
        return [(problem.reason, problem.message) for problem in self.outcome.problems]


@pytest.fixture
def owner(plane: ControlPlane, namespace: str) -> Owner:
    """A Memcached without children."""
    obj = {
        "apiVersion": MEMCACHEDS.api_version,
        "kind": MEMCACHEDS.kind,
        "metadata": {"name": "cache", "namespace": namespace},
        "spec": {"size": 2, "image": IMAGE},
    }
    return Owner(plane, plane.create(MEMCACHEDS, obj))


QUANTITIES: list[dict[str, Any]] = [
    {},
    {"resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}}},
    {"resources": {"limits": {"cpu": 1, "memory": "0.5Gi"}}},
    {"resources": {"limits": {"memory": "268435456"}, "requests": {"cpu": "1e-1"}}, "cache": {"memory": "100M"}},
]


def test_restart_writes_nothing_with_any_format_of_a_quantity(owner: Owner) -> None:
    assert owner.apply() == CREATED
    for spec in QUANTITIES:
        owner.spec(**spec)
        owner.apply()
        owner.relist()
        assert owner.apply() == {}, spec


def metadata(owner: Owner, resource: Resource) -> tuple[Any, Any]:
    """The labels and annotations of a child that have keys of example.com."""
    meta = owner.live(resource)["metadata"]
    labels, annotations = (
        {name: text for name, text in meta[part].items() if name.startswith("example.com/")}
        for part in ("labels", "annotations")
    )
    return labels, annotations


def test_inherited_metadata_is_added_changed_and_removed_with_one_write_per_child(owner: Owner) -> None:
    """No pod is replaced, because no part of a spec changes."""
    service = {"labels": {"example.com/b": "service"}}
    owner.spec(service=service)
    owner.apply()
    specs = [owner.live(resource)["spec"] for resource in OWNS]
    owner.spec(inheritedMetadata={"labels": {"example.com/a": "1", "example.com/b": "1"}})
    # Transfer and apply. That of the Deployment is repeated if its controller has written meanwhile.
    assert owner.apply()["patch services"] == 2
    assert metadata(owner, DEPLOYMENTS) == ({"example.com/a": "1", "example.com/b": "1"}, {})
    assert metadata(owner, SERVICES) == ({"example.com/a": "1", "example.com/b": "service"}, {})
    changed = {"labels": {"example.com/a": None, "example.com/b": "2"}, "annotations": {"example.com/c": "3"}}
    owner.plane.change(owner.key(SERVICES), {"metadata": {"labels": {"example.com/theirs": "kept"}}})
    owner.relist()
    owner.spec(inheritedMetadata=changed)
    assert owner.apply() == {"patch deployments": 1, "patch services": 1}
    assert metadata(owner, DEPLOYMENTS) == ({"example.com/b": "2"}, {"example.com/c": "3"})
    theirs = {"example.com/b": "service", "example.com/theirs": "kept"}
    assert metadata(owner, SERVICES) == (theirs, {"example.com/c": "3"})
    owner.spec(service=None, inheritedMetadata={"annotations": None})
    assert owner.apply() == {"patch deployments": 1, "patch services": 1}
    assert metadata(owner, SERVICES) == ({"example.com/b": "2", "example.com/theirs": "kept"}, {})
    owner.spec(inheritedMetadata=None)
    assert owner.apply() == {"patch deployments": 1, "patch services": 1}
    assert metadata(owner, DEPLOYMENTS) == ({}, {})
    assert [owner.live(resource)["spec"] for resource in OWNS] == specs
    owner.relist()
    assert owner.apply() == {}


CONTRARY: dict[str, tuple[Resource, dict[str, Any], dict[str, Any]]] = {
    "minAvailable": (
        POD_DISRUPTION_BUDGETS,
        {"podDisruptionBudget": {"maxUnavailable": 1}},
        {"maxUnavailable": None, "minAvailable": 1},
    ),
    "maxSurge": (
        DEPLOYMENTS,
        {"rollout": {"maxUnavailable": 0}},
        {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}},
    ),
    "maxUnavailable": (
        DEPLOYMENTS,
        {"rollout": {"maxSurge": 0}},
        {"strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}},
    ),
}
"""Changes by another client after which a repair of only the changed field would be invalid."""


@pytest.mark.parametrize(("resource", "spec", "change"), CONTRARY.values(), ids=CONTRARY.keys())
def test_value_that_contradicts_ours_is_reverted(
    owner: Owner, resource: Resource, spec: dict[str, Any], change: dict[str, Any]
) -> None:
    owner.spec(size=2, **spec)
    owner.apply()
    before = owner.live(resource)["spec"]
    owner.plane.change(owner.key(resource), {"spec": change})
    owner.relist([*OWNS, POD_DISRUPTION_BUDGETS])
    assert owner.apply().keys() == {f"patch {resource.plural}"}
    assert owner.problems == []
    assert owner.live(resource)["spec"] == before
    assert owner.apply() == {}
