"""What a release consists of: layouts of images, sums, bills of materials, provenance, and the commands that sign."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.public.images import BASE
from release.errors import ReleaseError
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


def test_images_are_joined_whatever_their_order(tmp_path: Path) -> None:
    first, second = (
        layout(tmp_path / "1", ("amd64", "arm64"), {"a": "1"}),
        layout(tmp_path / "2", ("arm64", "amd64"), {"a": "1"}),
    )
    with pytest.raises(ReleaseError, match="has no index of its images"):
        _ = first.digest
    assert layouts.join(first, "op:1") == layouts.join(second, "op:1") == first.digest == second.digest
    assert list(first.platforms()) == ["amd64", "arm64"]
    assert (tmp_path / "1/index.json").read_bytes() == (tmp_path / "2/index.json").read_bytes()


def test_two_images_of_one_architecture_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="has two images of one architecture"):
        layouts.join(layout(tmp_path / "l", ("amd64", "amd64"), {}), "op:1")


def test_upper_layers_replace_files(tmp_path: Path) -> None:
    made = layout(tmp_path / "l", ("amd64",), {"./a.txt": "low", "b.txt": "b", "c": ""}, {"a.txt": "high"})
    layouts.join(made, "op:1")
    assert list(layouts.files(made, made.platforms()["amd64"], ".txt")) == [("a.txt", b"high"), ("b.txt", b"b")]


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


def test_release_names_its_images_by_digest(artifacts: Artifacts) -> None:
    assert artifacts.names() == NAMES
    lines = (artifacts.root / "images.txt").read_text().splitlines()
    assert lines == [f"{NAMES[part]}@{artifacts.layout(part).digest}" for part in sorted(NAMES)]
    artifacts.check()


def test_files_alone_are_verified_as_with_the_images(artifacts: Artifacts) -> None:
    """Users download the files; the images are in the registry."""
    signer = signing.Signer("cosign.pub")
    expected = sorted(signing.verify(artifacts.published(), artifacts.root, signer))
    shutil.rmtree(artifacts.root / "images")
    artifacts.check()
    assert sorted(signing.verify(artifacts.released(), artifacts.root, signer)) == expected
    with pytest.raises(ReleaseError, match="has no images: build the release"):
        artifacts.published()
    (artifacts.root / "SHA256SUMS").unlink()
    with pytest.raises(ReleaseError, match="SHA256SUMS is missing: build the release"):
        artifacts.check()


def test_images_depend_on_their_content_only() -> None:
    recipe = images.Recipe("1.2.3", 42, "amd64", images.local_bases("amd64"), "b", fresh=True)
    options = images.options(recipe, "arm64")
    assert options[:5] == ["--platform", "linux/arm64", "--timestamp", "42", "--identity-label=false"]
    assert ("--no-cache" in options, "--pull-always" in options) == (True, False)
    assert images.arguments(recipe, "amd64") == [
        f"BASE_IMAGE={BASE}",
        "BUILD_IMAGE=b",
        "BUILDPLATFORM=linux/amd64",
        "TARGETPLATFORM=linux/amd64",
    ]
    arm = images.arguments(recipe, "arm64")
    assert (arm[0], arm[-1]) == (f"BASE_IMAGE={images.STAND_IN}:arm64", "TARGETPLATFORM=linux/arm64")
    published = images.Recipe("1.2.3", 42, "amd64", {"amd64": "registry.example.com/python@sha256:0"}, "b")
    assert "--pull-always" in images.options(published, "amd64"), "an older image of the same name would be used"


FILES = [
    (
        "opt/lib/kopf-1.45.2.dist-info/METADATA",
        b"Metadata-Version: 2.4\nName: kopf\nVersion: 1.45.2\nLicense-Expression: MIT\n",
    ),
    (
        "opt/lib/memcached_operator-1.2.3.dist-info/METADATA",
        b"Metadata-Version: 2.1\nName: memcached-operator\nVersion: 1.2.3\n",
    ),
    (
        "var/lib/dpkg/status",
        b"Package: libc6\nStatus: install ok installed\nArchitecture: arm64\nVersion: 2.41-12+deb13u1\n\n"
        b"Package: old\nStatus: deinstall ok config-files\nArchitecture: arm64\nVersion: 1\n",
    ),
    ("usr/local/include/python3.13/patchlevel.h", b'/* */\n#define PY_VERSION              "3.13.9"\n'),
    ("usr/lib/os-release", b'ID=debian\nNAME="Debian"\n'),
]


def test_bill_lists_python_and_debian_packages() -> None:
    digest = f"sha256:{'a' * 64}"
    bill = sbom.bill("registry.example.com/a/op", "1.2.3", digest, "arm64", 0, FILES)
    assert {each["purl"]: each["type"] for each in bill["components"]} == {
        "pkg:pypi/kopf@1.45.2": "library",
        "pkg:pypi/memcached-operator@1.2.3": "application",
        "pkg:generic/python@3.13.9": "application",
        "pkg:deb/debian/libc6@2.41-12%2Bdeb13u1?arch=arm64": "library",
    }
    root = bill["metadata"]["component"]
    assert root["purl"].startswith(
        f"pkg:oci/op@sha256%3A{'a' * 64}?arch=arm64&repository_url=registry.example.com/a/op"
    )
    assert bill["dependencies"][0] == {
        "ref": root["bom-ref"],
        "dependsOn": [part["bom-ref"] for part in bill["components"]],
    }
    assert bill["components"][0]["licenses"] == [{"expression": "MIT"}]
    assert bill == sbom.bill("registry.example.com/a/op", "1.2.3", digest, "arm64", 0, FILES)


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


def test_everything_is_signed_and_verified(artifacts: Artifacts) -> None:
    published = artifacts.published("localhost:5000")
    signer = signing.Signer("cosign.key", plain_http=True)
    made = list(signing.publish(published, artifacts.root / "p.json", artifacts.root, signer))
    checked = list(signing.verify(artifacts.released("localhost:5000"), artifacts.root, signer))
    signed = {words[-1] for words in made if words[1] in {"sign", "sign-blob"}}
    verified = {words[-1] for words in checked if words[1] in {"verify", "verify-blob"}}
    assert {each.partition("@")[0] for each in signed if "@" in each} == {
        f"localhost:5000/{name.partition('/')[2].rpartition(':')[0]}" for name in NAMES.values()
    }
    assert verified == {f"localhost:5000/{name.partition('/')[2]}" for name in NAMES.values()} | {
        str(artifacts.root / "SHA256SUMS")
    }
    assert checked[0][1] == "verify-blob", "the digests of the images are trusted only if the list of them is signed"
    attested = [words[-1] for words in made if words[1] == "attest"]
    assert len(attested) == len([words for words in checked if words[1] == "verify-attestation"]) == 5 + 2 * 2
    assert all(
        "--key" in words and "--allow-http-registry" in words for words in made if words[1] in {"sign", "attest"}
    )


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
    for words in signing.verify(artifacts.published(), artifacts.root, signer):
        assert "--insecure-ignore-tlog" not in words
        assert words[words.index("--certificate-identity-regexp") + 1] == "^https://example.com/p/"
        assert words[words.index("--certificate-oidc-issuer") + 1] == "https://issuer.example.com"
