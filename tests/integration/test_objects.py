"""What we install and what the controller creates is stored in full by every supported version of Kubernetes."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml

import goldens
from integration.control_plane import CRD_FILES, CRDS, NAMESPACES, ROOT, ControlPlane, client_of
from memcached_operator.kube.client import APPLY_PATCH
from memcached_operator.kube.resource import Key, Object
from memcached_operator.reconcile.compare import covers

SYSTEM = "memcached-operator-system"
STRICT = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "test", "force": "true"}
"""What would be stored; a field that the API server does not know, or that is given twice, is an error."""


def path_of(obj: Object) -> str:
    """Where an object is served."""
    meta, kind = obj["metadata"], obj["kind"].lower()
    base = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
    space = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    return f"{base}{space}/{f'{kind[:-1]}ie' if kind.endswith('y') else kind}s/{meta['name']}"


def applied(plane: ControlPlane, objects: Iterable[Object]) -> list[Object]:
    """What would be stored of each object. Raises ApiError for the first that is denied."""

    async def run() -> list[Object]:
        async with client_of(plane.connection) as client:
            return [await client.request("PATCH", path_of(obj), obj, APPLY_PATCH, STRICT) for obj in objects]

    return asyncio.run(run())


def changed(wanted: Sequence[Object], stored: Sequence[Object]) -> list[str]:
    """Which objects are not stored as they are given; the empty value of a variable never is."""
    pairs = [
        (json.loads(json.dumps(obj), object_hook=_filled), found) for obj, found in zip(wanted, stored, strict=True)
    ]
    return [f"{obj['kind']} {obj['metadata']['name']}" for obj, found in pairs if not covers(found, obj)]


def _filled(part: Object) -> Object:
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
    assert changed(wanted, applied(plane, wanted)) == []


@pytest.mark.parametrize("path", CRD_FILES, ids=lambda path: path.stem)
def test_the_definition_is_stored_with_every_rule(plane: ControlPlane, path: Path) -> None:
    wanted = yaml.safe_load(path.read_text())
    assert covers(plane.must_get(Key(CRDS, "", wanted["metadata"]["name"])), wanted)


@pytest.mark.parametrize("kind", goldens.KINDS)
def test_every_golden_is_stored_in_full(plane: ControlPlane, namespace: str, kind: str) -> None:
    found = [obj for path in goldens.paths(kind).values() for obj in goldens.objects(path)]
    wanted = [{**obj, "metadata": {**obj["metadata"], "namespace": namespace}} for obj in found]
    assert changed(wanted, applied(plane, wanted)) == []


def test_the_samples_are_accepted(plane: ControlPlane, namespace: str) -> None:
    listed = yaml.safe_load((ROOT / "config/samples/kustomization.yaml").read_text())["resources"]
    found = [yaml.safe_load((ROOT / "config/samples" / name).read_text()) for name in listed]
    applied(plane, [{**obj, "metadata": {**obj["metadata"], "namespace": namespace}} for obj in found])
