"""What `make generated` does not show: outdated files, and the snapshot of Kubernetes' own types."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from crds import __main__ as command
from crds import snapshot
from crds.descriptions import kubernetes_type
from memcached_api import conditions, kubernetes, scheduling

TYPES: dict[str, Any] = {
    name: found
    for module in (conditions, kubernetes, scheduling)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, msgspec.Struct) and (name := kubernetes_type(found))
}
"""Our structs for types of Kubernetes, by the name of the type."""


def test_outdated_files_are_reported_and_written(tmp_path: Path) -> None:
    files = {Path("a/b.yaml"): "x\n", Path("c.md"): "y\n"}
    (tmp_path / "c.md").write_text("y\n")
    with pytest.raises(SystemExit, match=r"not as generated: a/b.yaml; run"):
        command.write(files, check=True, root=tmp_path)
    command.write(files, check=False, root=tmp_path)
    command.write(files, check=True, root=tmp_path)
    assert (tmp_path / "a/b.yaml").read_text() == "x\n"


@pytest.mark.parametrize(("words", "version"), [([], "v1.2.3"), (["--kubernetes", "v9"], "v9")])
def test_snapshot_is_created_from_an_openapi_document(
    words: list[str], version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field = {"description": "A field.", "type": "string"}
    schemas = {name: {"type": "object", "properties": {"field": field}} for name in snapshot.TYPES}
    document = tmp_path / "core.json"
    document.write_text(json.dumps({"info": {"version": "v1.2.3"}, "components": {"schemas": schemas}}))
    monkeypatch.setattr(snapshot, "FILE", tmp_path / "kubernetes.json")
    assert CliRunner().invoke(command.main, ["snapshot", str(document), *words]).exit_code == 0
    found = json.loads(snapshot.FILE.read_text())
    assert found["kubernetes"] == version
    assert found["types"][snapshot.TYPES[0]] == {"properties": {"field": {"description": "A field."}}}


def test_our_types_of_kubernetes_have_only_fields_of_kubernetes() -> None:
    assert TYPES.keys() == set(snapshot.TYPES)
    for name, struct in TYPES.items():
        assert set(struct.__struct_encode_fields__) <= snapshot.described(name)["properties"].keys(), name
