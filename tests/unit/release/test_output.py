"""The parts of a release: lists, provenance, and the commands that sign and verify. tests/releases builds one."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from release.output import images, layouts, provenance, registry, sbom, signing
from release.output.artifacts import HUB, Artifacts
from release.output.layouts import Layout

NAMES = images.Names("registry.example.com/op", "registry.example.com/op-agent").tagged("1.2.3")
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def packed(files: Mapping[str, str]) -> bytes:
    """A compressed layer."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return gzip.compress(stream.getvalue(), mtime=0)


def layout(root: Path, architectures: tuple[str, ...], *contents: Mapping[str, str]) -> Layout:
    """A layout as buildah writes it: an image for each architecture with these layers, not yet joined."""
    blobs = root / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    tops: list[dict[str, Any]] = []
    for architecture in architectures:
        config = blob(json.dumps({"architecture": architecture, "os": "linux"}).encode())
        manifest = {"schemaVersion": 2, "config": config, "layers": [blob(packed(each)) for each in contents]}
        tops.append({"mediaType": MANIFEST, **blob(json.dumps(manifest).encode())})
    (root / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": tops}))
    return Layout(root)


CHART = packed(
    {
        "op/Chart.yaml": json.dumps(
            {
                "name": "op",
                "version": "1.2.3",
                "description": "d",
                "home": "https://example.com",
                "sources": ["https://example.com/p"],
                "maintainers": [{"name": "a", "email": "a@example.com"}],
            }
        ),
        "op/charts/other/Chart.yaml": "{}",
    }
)


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    """A small release."""
    made = Artifacts(tmp_path / "artifacts")
    for part in (*images.PARTS, *images.DATA):
        layouts.join(layout(made.layout(part).root, ("amd64", "arm64"), {"part": part}), NAMES[part])
    registry.chart(CHART, 0).write(made.layout(images.CHART).root, NAMES[images.CHART])
    (made.root / HUB).write_text("owners: []\n")
    for part in images.PARTS:
        for architecture in images.ARCHITECTURES:
            digest = made.layout(part).platforms()[architecture]
            bill = sbom.bill(NAMES[part].rpartition(":")[0], "1.2.3", digest, architecture, 0, [])
            made.write_json(made.bill(part, architecture), bill)
    (made.root / "install.yaml").write_text("kind: Namespace\n")
    made.write_list(NAMES)
    made.write_sums()
    return made


def test_provenance_names_the_source_and_the_base_images() -> None:
    base = f"docker.io/library/python:3.13-slim@sha256:{'b' * 64}"
    origin = provenance.Origin(
        "https://example.com/p", "c0ffee", "https://example.com/b", (base,), {"lock": "d"}, {"buildah": "1"}
    )
    made = provenance.predicate("1.2.3", 42, origin)
    assert made["buildDefinition"]["resolvedDependencies"] == [
        {"uri": "git+https://example.com/p@refs/tags/v1.2.3", "digest": {"gitCommit": "c0ffee"}},
        {"uri": "docker:docker.io/library/python:3.13-slim", "digest": {"sha256": "b" * 64}},
        {"uri": "file:lock", "digest": {"sha256": "d"}},
    ]
    statement = provenance.statement(provenance.subjects({"op": "sha256:1"}, {"f": "2"}), made)
    assert statement["subject"] == [{"name": "f", "digest": {"sha256": "2"}}, {"name": "op", "digest": {"sha256": "1"}}]
    assert (statement["_type"], statement["predicateType"]) == (provenance.STATEMENT, provenance.PREDICATE)


def test_metadata_for_artifact_hub_is_pushed_beside_the_chart_and_not_signed(
    artifacts: Artifacts, tmp_path: Path
) -> None:
    """Its tag moves with each release, so it is not one of the images that a release verifies."""
    published = artifacts.published()
    (hub,) = artifacts.for_hub(published, tmp_path / "hub")
    assert hub.name == "registry.example.com/charts/memcached-operator:artifacthub.io"
    made = list(signing.publish(published, artifacts.root / "p.json", artifacts.root, signing.Signer(), [hub]))
    assert [words[:2] for words in made if hub.name in words or hub.reference in words] == [["crane", "push"]]
    (artifacts.root / HUB).unlink()
    assert artifacts.for_hub(published, tmp_path / "hub") == []


def test_keyless_signatures_name_who_may_sign(artifacts: Artifacts) -> None:
    signer = signing.Signer(identity="^https://example.com/p/", issuer="https://issuer.example.com")
    made = list(signing.verify(artifacts.published(), artifacts.root, signer))
    assert made[0][1] == "verify-blob", "the digests of the images are trusted only if the list of them is signed"
    for words in made:
        assert "--insecure-ignore-tlog" not in words
        assert words[words.index("--certificate-identity-regexp") + 1] == "^https://example.com/p/"
        assert words[words.index("--certificate-oidc-issuer") + 1] == "https://issuer.example.com"
