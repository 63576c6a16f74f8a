"""Fields that leave a manifest: admission sets their defaults again, with every way to write an object."""

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from faults.proxy import certificate
from faults.registration import registered
from faults.sandbox import Plane, Settings
from faults.webhook import webhook
from integration.control_plane import ControlPlane, client_of
from memcached_api.images import Images
from memcached_operator.kube.resource import Object
from memcached_webhooks.stored import Stored
from support import kube

pytestmark = pytest.mark.server

FIRST, SECOND = (
    Images("example.com/memcached:1", "example.com/agent:1"),
    Images("example.com/memcached:2", "example.com/agent:2"),
)
"""The default images of two releases."""
OWN_IMAGES: Object = {"image": "example.com/own:1", "agent": {"image": "example.com/own-agent:1"}}
COMMON: Object = {"size": 2, "monitoring": {}}
"""A manifest without any field that admission sets."""
OWN: Object = {
    **COMMON,
    **OWN_IMAGES,
    "podDisruptionBudget": {"maxUnavailable": 2},
    "podTemplate": {"spec": {"topologySpreadConstraints": [], "nodeSelector": {"a": "b"}}},
    "rollout": {"maxUnavailable": "50%", "maxSurge": 3, "paused": True, "minReadySeconds": 3},
}
"""A manifest with a value for each of them."""
REMOVED = {
    "spec.podTemplate.spec.topologySpreadConstraints": "to have none, set it to []",
    "spec.podDisruptionBudget": "to have none, set enabled: false",
    "spec.rollout.maxUnavailable": "0; to use another value, set the field",
    "spec.rollout.maxSurge": "1; to use another value, set the field",
    "spec.image": f"{FIRST.memcached}; to use another value, set the field",
    "spec.agent.image": f"{FIRST.agent}; to use another value, set the field",
}
"""The fields of OWN that admission sets, with the end of the warning about their removal."""
SET: Object = {
    "image": FIRST.memcached,
    "agent": {"image": FIRST.agent},
    "podDisruptionBudget": {"enabled": True, "maxUnavailable": 1},
    "rollout": {"maxUnavailable": 0, "maxSurge": 1},
}
"""Some of what admission sets in a new object."""
ADMITTED = ["image", "agent/image", "podDisruptionBudget", "rollout/maxUnavailable", "rollout/maxSurge"]
"""Paths of some fields that admission sets if a client does not."""


@dataclass(frozen=True)
class User:
    """kubectl in one namespace, for objects of one version."""

    namespace: str
    version: str = "v1"

    def manifest(self, name: str, spec: Object, **metadata: Any) -> Object:
        """A manifest."""
        meta = {"name": name, "namespace": self.namespace, **metadata}
        return {"apiVersion": f"cache.example.com/{self.version}", "kind": "Memcached", "metadata": meta, "spec": spec}

    def get(self, name: str) -> Object:
        """An object as stored, with its field managers."""
        resource = f"memcacheds.{self.version}.cache.example.com/{name}"
        found = self.run("get", resource, "-o", "json", "--show-managed-fields")
        return json.loads(found[0])

    def spec(self, name: str) -> Object:
        """The stored spec."""
        return self.get(name)["spec"]

    def run(self, *words: str, stdin: Object | None = None) -> tuple[str, str]:
        """The output of a command, and its warnings."""
        done = kube.kubectl("-n", self.namespace, *words, stdin=stdin)
        return done.stdout, done.stderr

    def patch(self, name: str, patch: Any, kind: str = "merge", *words: str) -> str:
        """Patch an object; returns the warnings."""
        resource = f"memcacheds.{self.version}.cache.example.com/{name}"
        return self.run("patch", resource, f"--type={kind}", "-p", json.dumps(patch), *words)[1]


def apply(user: User, name: str, spec: Object) -> str:
    """Client-side apply."""
    return user.run("apply", "-f", "-", stdin=user.manifest(name, spec))[1]


def apply_server_side(user: User, name: str, spec: Object) -> str:
    """Server-side apply."""
    return user.run("apply", "--server-side", "-f", "-", stdin=user.manifest(name, spec))[1]


def overwrite(user: User, name: str, spec: Object) -> str:
    """Replace an object, or create it."""
    exists = kube.kubectl("-n", user.namespace, "get", "memcached", name, check=False).returncode == 0
    return user.run("replace" if exists else "create", "-f", "-", stdin=user.manifest(name, spec))[1]


WRITES: dict[str, Callable[[User, str, Object], str]] = {
    "apply": apply,
    "server-side apply": apply_server_side,
    "replace": overwrite,
}
"""The ways to write a whole manifest; each returns the warnings."""


def managed(obj: Object) -> list[str]:
    """Those of ADMITTED that a client has set."""
    stored = Stored({}, json.dumps(obj).encode())
    return [path for path in ADMITTED if stored.has_manager(path)]


def removed(warnings: str) -> dict[str, str]:
    """The fields that the warnings call removed, with the end of each warning."""
    parts = [
        line.removeprefix("Warning: ").partition(" was removed, so its default is set")
        for line in warnings.splitlines()
    ]
    return {field: end.lstrip(",; ") for field, middle, end in parts if middle}


@pytest.fixture
def user(kubeconfig: None) -> User:
    """kubectl in a namespace that the test creates with `run`."""
    del kubeconfig
    return User(f"removals-{uuid.uuid4().hex[:8]}")


def run(plane: ControlPlane, user: User, directory: Path, *stages: tuple[Images | None, Callable[[], None]]) -> None:
    """Run each stage with the admission of a release that has these default images; None: without admission."""

    async def run_all() -> None:
        async with client_of(plane.connection) as client:
            own = Plane(plane.connection, client, certificate(), directory)
            async with own.sandbox(user.namespace, Settings()) as sandbox:
                for images, work in stages:
                    if images is None:
                        await asyncio.to_thread(work)
                        continue
                    options = (f"--default-image={images.memcached}", f"--agent-image={images.agent}")
                    async with (
                        webhook(sandbox, options=options) as admission,
                        registered(sandbox, admission.url, admission.pair.ca, admission),
                    ):
                        await asyncio.to_thread(work)

    asyncio.run(run_all())


@pytest.fixture
def stages(plane: ControlPlane, user: User, tmp_path: Path) -> Callable[..., None]:
    """`run` for this test."""
    return lambda *stages: run(plane, user, tmp_path, *stages)


def has(spec: Object, values: Object) -> bool:
    """Whether a spec has these values."""
    return all(spec.get(name) == value for name, value in values.items())


@pytest.mark.parametrize("way", WRITES)
def test_removed_fields_have_their_defaults_as_in_a_new_object(
    stages: Callable[..., None], user: User, way: str
) -> None:
    """Also if the object was written in another version of the API."""
    write, other = WRITES[way], replace(user, version="v1alpha1")

    def steps() -> None:
        write(user, "old", OWN)
        assert has(user.spec("old"), OWN_IMAGES)
        assert managed(user.get("old")) == ADMITTED
        assert removed(write(other, "old", COMMON)) == REMOVED
        write(user, "new", COMMON)
        assert user.spec("old") == user.spec("new")
        assert has(user.spec("old"), SET)
        assert managed(user.get("old")) == managed(user.get("new")) == []
        before = user.get("old")
        assert removed(write(other, "old", COMMON)) == {}
        assert user.get("old") == before

    stages((FIRST, steps))


@pytest.mark.parametrize("way", WRITES)
def test_unchanged_manifest_has_no_effect_after_an_upgrade(stages: Callable[..., None], user: User, way: str) -> None:
    write = WRITES[way]
    objects = {"plain": COMMON, "own": OWN, "slots": {**COMMON, "identity": "Stable"}}

    def first() -> None:
        for name, spec in objects.items():
            write(user, name, spec)
            write(user, name, spec)  # stores the status that the CRD sets, as the controller's first one does

    def second() -> None:
        for name, spec in objects.items():
            before = user.get(name)
            assert removed(write(user, name, spec)) == {}
            assert user.get(name) == before
        write(user, "plain", {**COMMON, **OWN_IMAGES})
        assert has(user.spec("plain"), OWN_IMAGES)
        assert list(removed(write(user, "plain", COMMON))) == ["spec.image", "spec.agent.image"]
        assert has(user.spec("plain"), {"image": SECOND.memcached, "agent": {"image": SECOND.agent}})

    stages((FIRST, first), (SECOND, second))


@pytest.mark.parametrize("way", WRITES)
def test_object_without_the_defaults_stays_without(stages: Callable[..., None], user: User, way: str) -> None:
    write = WRITES[way]

    def unadmitted() -> None:
        write(user, "never", COMMON)
        write(user, "removed", OWN)
        write(user, "removed", COMMON)
        assert user.spec("removed") == user.spec("never"), "without admission, a removed field is absent"

    def admitted() -> None:
        before = user.spec("never")
        assert not before.keys() & SET.keys()
        changed = {**COMMON, "size": 3}
        assert removed(write(user, "never", changed)) == {}
        assert user.spec("never") == {**before, "size": 3}
        user.patch("never", {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/hold"]}})
        user.run("scale", "memcached/never", "--replicas=4")
        user.run("patch", "memcached/never", "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":1}}')
        assert user.spec("never") == {**before, "size": 4}
        user.patch("never", {"metadata": {"finalizers": None}})

    stages((None, unadmitted), (FIRST, admitted))
