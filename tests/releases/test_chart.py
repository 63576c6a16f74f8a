"""The chart of a release in a registry: what Helm installs from there, and what Artifact Hub reads."""

import json
from pathlib import Path

import pytest
import yaml

from bundle.objects import containers, parse
from cluster.shell import run
from release.commit.tree import Tree
from release.output.artifacts import HUB, Artifacts
from release.output.registry import HUB_CONTENT, HUB_TAG
from releases.conftest import VERSION
from support.charts import NAMESPACE, RELEASE
from support.helm import Helm, helm

CREATED = "org.opencontainers.image.created"


@pytest.fixture(params=["helm-3", "helm-4"])
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Helm:
    """Each Helm, with directories of its own."""
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"HELM_{name}_HOME", str(tmp_path / name))
    folder = tmp_path / "bin"
    folder.mkdir()
    return helm(request.param, folder)


@pytest.fixture
def chart(repository: Tree, release: Artifacts, registry: str, keys: Path) -> str:
    """The chart of the published release, as users name it."""
    shared = [f"--version={VERSION}", f"--output={release.root.parent}", f"--registry={registry}", "--plain-http"]
    repository.run("-m", "release", "publish", f"--key={keys / 'cosign.key'}", *shared)
    return f"oci://{registry}/{release.names()['chart'].partition('/')[2].rpartition(':')[0]}"


def archive(release: Artifacts) -> Path:
    """The packed chart."""
    return release.root / f"memcached-operator-{VERSION}.tgz"


def test_helm_installs_the_published_chart(release: Artifacts, chart: str, program: Helm, tmp_path: Path) -> None:
    program.output("pull", chart, f"--version={VERSION}", "--plain-http", f"--destination={tmp_path}")
    assert (tmp_path / archive(release).name).read_bytes() == archive(release).read_bytes()
    words = ["template", RELEASE, f"--namespace={NAMESPACE}"]
    rendered = program.output(*words, chart, f"--version={VERSION}", "--plain-http")
    assert rendered == program.output(*words, archive(release))
    deployments = [each for each in parse(rendered, chart) if each["kind"] == "Deployment"]
    assert {each["image"] for each in containers(deployments)} == {release.names()["operator"]}
    # Of the tags, among them those of signatures and of Artifact Hub, Helm takes the newest version.
    assert yaml.safe_load(program.output("show", "chart", chart, "--plain-http"))["version"] == VERSION


def test_chart_in_the_registry_is_the_one_that_helm_pushes(
    release: Artifacts, chart: str, program: Helm, programs: Path
) -> None:
    other = chart.replace("/charts/", "/by-helm/")
    program.output("push", archive(release), other.rpartition("/")[0], "--plain-http")
    found: list[object] = []
    for name in (chart, other):
        place = name.removeprefix("oci://")
        manifest = json.loads(run([programs / "crane", "manifest", f"{place}:{VERSION}"]))
        manifest.setdefault("mediaType", "application/vnd.oci.image.manifest.v1+json")
        manifest["annotations"].pop(CREATED)
        digest = manifest["config"].pop("digest")
        manifest["config"].pop("size")  # The same JSON in another order
        found.append((manifest, json.loads(run([programs / "crane", "blob", f"{place}@{digest}"]))))
    assert found[0] == found[1]


def test_artifact_hub_finds_the_metadata_of_the_repository(release: Artifacts, chart: str, programs: Path) -> None:
    place = chart.removeprefix("oci://")
    manifest = json.loads(run([programs / "crane", "manifest", f"{place}:{HUB_TAG}"]))
    (digest,) = (layer["digest"] for layer in manifest["layers"] if layer["mediaType"] == HUB_CONTENT)
    assert run([programs / "crane", "blob", f"{place}@{digest}"]) == (release.root / HUB).read_text()
