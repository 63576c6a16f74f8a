"""The committed files equal the generated ones, and the samples are valid."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from crds import __main__ as command
from crds import snapshot
from crds.descriptions import kubernetes_type
from memcached_api.conditions import Condition
from memcached_api.kubernetes import (
    ConfigMapKeySelector,
    EnvVar,
    EnvVarSource,
    LocalObjectReference,
    ObjectFieldSelector,
    ResourceFieldSelector,
    ResourceRequirements,
    SecretKeySelector,
    ServicePort,
)
from memcached_api.registry import KINDS as REGISTERED_KINDS
from memcached_api.scheduling import (
    Affinity,
    LabelSelector,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSecurityContext,
    PreferredSchedulingTerm,
    SeccompProfile,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "config/samples").glob("*_v*.yaml"))
KINDS = {kind.name: kind for kind in REGISTERED_KINDS}
OWN_TYPES = (
    Affinity,
    Condition,
    ConfigMapKeySelector,
    EnvVar,
    EnvVarSource,
    LabelSelector,
    LabelSelectorRequirement,
    LocalObjectReference,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectFieldSelector,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    PodSecurityContext,
    PreferredSchedulingTerm,
    ResourceFieldSelector,
    ResourceRequirements,
    SeccompProfile,
    SecretKeySelector,
    ServicePort,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)


@pytest.mark.parametrize("path", [*command.manifests(), *command.docs()])
def test_committed_file_is_up_to_date(path: Path):
    text = (command.manifests() | command.docs())[path]
    assert (ROOT / path).read_text() == text, "run `make generate manifests`"


def test_generation_is_deterministic():
    assert command.manifests() == command.manifests()
    assert command.docs() == command.docs()


def test_outdated_files_are_reported_and_written(tmp_path: Path):
    files = {Path("a/b.yaml"): "x\n", Path("c.md"): "y\n"}
    (tmp_path / "c.md").write_text("y\n")
    with pytest.raises(SystemExit, match=r"not as generated: a/b.yaml; run"):
        command.write(files, check=True, root=tmp_path)
    command.write(files, check=False, root=tmp_path)
    command.write(files, check=True, root=tmp_path)
    assert (tmp_path / "a/b.yaml").read_text() == "x\n"


@pytest.mark.parametrize("name", ["manifests", "docs", "generate"])
def test_commands(name: str):
    result = CliRunner().invoke(command.main, [name, "--check"])
    assert result.exit_code == 0, result.output


def test_snapshot_is_created_from_an_openapi_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    document: dict[str, Any] = {
        "info": {"version": "v1.2.3"},
        "components": {"schemas": {name: {"type": "object", "properties": {}} for name in snapshot.TYPES}},
    }
    (tmp_path / "core.json").write_bytes(yaml.safe_dump(document).encode())
    monkeypatch.setattr(snapshot, "FILE", tmp_path / "kubernetes.json")
    (tmp_path / "core.json").write_text(snapshot.json.dumps(document))
    assert CliRunner().invoke(command.main, ["snapshot", str(tmp_path / "core.json")]).exit_code == 0
    assert '"kubernetes": "v1.2.3"' in (tmp_path / "kubernetes.json").read_text()
    arguments = ["snapshot", str(tmp_path / "core.json"), "--kubernetes", "v9"]
    assert CliRunner().invoke(command.main, arguments).exit_code == 0
    assert '"kubernetes": "v9"' in (tmp_path / "kubernetes.json").read_text()


@pytest.mark.parametrize("cls", OWN_TYPES)
def test_kubernetes_types_have_only_fields_of_kubernetes(cls: Any):
    name = kubernetes_type(cls)
    assert name in snapshot.TYPES
    assert set(cls.__struct_encode_fields__) <= set(snapshot.described(name)["properties"])


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_are_valid(path: Path):
    sample: dict[str, Any] = yaml.safe_load(path.read_text())
    kind = KINDS[sample["kind"]]
    assert kind.validate(sample) == []
    group, version = sample["apiVersion"].split("/")
    assert (group, version in kind.versions) == (kind.group, True)
    assert path.name.startswith(f"{group.split('.')[0]}_{version}_{kind.name.lower()}")
    fields = set(kind.spec.__struct_encode_fields__)
    assert set(sample["spec"]) <= fields
    if "full" in path.name:
        assert set(sample["spec"]) == fields


def test_every_type_of_the_snapshot_is_used():
    assert {kubernetes_type(cls) for cls in OWN_TYPES} == set(snapshot.TYPES)


def test_every_sample_is_listed():
    listed = yaml.safe_load((ROOT / "config/samples/kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == [path.name for path in SAMPLES]
