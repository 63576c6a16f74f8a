"""Every supported version of Kubernetes stores the installed objects, the goldens and the examples in full."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml

import goldens
from integration.control_plane import NAMESPACES, ROOT, ControlPlane, client_of
from memcached_operator.kube.client import APPLY_PATCH
from memcached_operator.kube.compare import covers
from memcached_operator.kube.resource import Key, Object
from support import examples

pytestmark = pytest.mark.server

SYSTEM = "memcached-operator-system"
STRICT = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "test", "force": "true"}
"""Parameters of a dry run that rejects unknown and duplicate fields."""


def path_of(obj: Object) -> str:
    """The API path of an object."""
    meta, kind = obj["metadata"], obj["kind"].lower()
    base = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
    namespace = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{base}{namespace}/{f'{kind[:-1]}ie' if kind.endswith('y') else kind}s/{meta['name']}"


def applied(plane: ControlPlane, objects: Iterable[Object]) -> list[Object]:
    """Apply objects with a dry run and return them. Raises ApiError for the first that is rejected."""

    async def run() -> list[Object]:
        async with client_of(plane.connection) as client:
            return [await client.request("PATCH", path_of(obj), obj, APPLY_PATCH, STRICT) for obj in objects]

    return asyncio.run(run())


def incomplete(wanted: Sequence[Object], stored: Sequence[Object]) -> list[str]:
    """The objects that are not stored in full; empty values, which the API server omits, are ignored."""
    pairs = [
        (json.loads(json.dumps(obj), object_hook=_without_empty_values), found)
        for obj, found in zip(wanted, stored, strict=True)
    ]
    return [f"{obj['kind']} {obj['metadata']['name']}" for obj, found in pairs if not covers(found, obj)]


def _without_empty_values(part: Object) -> Object:
    return {field: value for field, value in part.items() if value != ""}


@pytest.fixture
def system(plane: ControlPlane) -> Iterator[None]:
    """The operator's namespace."""
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    yield
    plane.delete(Key(NAMESPACES, "", SYSTEM))


@pytest.mark.usefixtures("system")
def test_the_installer_is_stored_in_full(plane: ControlPlane) -> None:
    wanted = list(yaml.safe_load_all((ROOT / "dist/install.yaml").read_text()))
    assert incomplete(wanted, applied(plane, wanted)) == []


@pytest.mark.parametrize("kind", goldens.KINDS)
def test_every_golden_is_stored_in_full(plane: ControlPlane, namespace: str, kind: str) -> None:
    found = [obj for path in goldens.paths(kind).values() for obj in goldens.objects(path)]
    wanted = [{**obj, "metadata": {**obj["metadata"], "namespace": namespace}} for obj in found]
    assert incomplete(wanted, applied(plane, wanted)) == []


def test_the_samples_are_accepted(plane: ControlPlane, namespace: str) -> None:
    listed = yaml.safe_load((ROOT / "config/samples/kustomization.yaml").read_text())["resources"]
    found = [yaml.safe_load((ROOT / "config/samples" / name).read_text()) for name in listed]
    applied(plane, [{**obj, "metadata": {**obj["metadata"], "namespace": namespace}} for obj in found])


@pytest.mark.parametrize("folder", examples.FOLDERS, ids=lambda folder: folder.name)
def test_each_example_is_accepted_and_its_children_are_stored_in_full(
    plane: ControlPlane, namespace: str, folder: Path
) -> None:
    """With the defaults of admission. test_diff.py applies the examples with kubectl and admission."""
    found = examples.memcacheds(folder)
    others = [obj for obj in examples.objects(folder) if obj not in found and not examples.needs_operator(obj)]
    for obj in [*map(examples.admitted, found), *others]:
        applied(plane, [{**obj, "metadata": {**obj["metadata"], "namespace": namespace}}])
    children = [child for obj in found for child in examples.children(obj, namespace)]
    assert incomplete(children, applied(plane, children)) == []
