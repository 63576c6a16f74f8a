"""Images on disk, as OCI image layouts: one index with an image for each architecture, or one artifact.

https://github.com/opencontainers/image-spec/blob/main/image-layout.md
"""

import hashlib
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from release.errors import ReleaseError

INDEX: Final = "application/vnd.oci.image.index.v1+json"
REFERENCE: Final = "org.opencontainers.image.ref.name"


@dataclass(frozen=True)
class Layout:
    """A directory in the OCI image layout."""

    root: Path

    def descriptors(self) -> list[dict[str, Any]]:
        """What the layout contains at the top: an image for each architecture, or one index of them."""
        return json.loads((self.root / "index.json").read_text())["manifests"]

    def blob(self, digest: str) -> Path:
        """The file of a digest, such as `sha256:…`."""
        return self.root / "blobs" / Path(*digest.split(":"))

    def load(self, digest: str) -> dict[str, Any]:
        """A blob that is JSON."""
        return json.loads(self.blob(digest).read_bytes())

    def add(self, media_type: str, content: bytes) -> dict[str, Any]:
        """Write a blob; return its descriptor."""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blob(digest).parent.mkdir(parents=True, exist_ok=True)
        self.blob(digest).write_bytes(content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def write_index(self, top: Mapping[str, Any], name: str) -> None:
        """Make this descriptor the only one at the top; `name`: its reference."""
        named = {**top, "annotations": {REFERENCE: name}}
        (self.root / "index.json").write_bytes(json_bytes({"schemaVersion": 2, "manifests": [named]}))

    @property
    def digest(self) -> str:
        """The digest of the index, or of the artifact. Raises ReleaseError if the architectures are not joined yet."""
        found = self.descriptors()
        if len(found) != 1 or not (found[0]["mediaType"] == INDEX or "artifactType" in found[0]):
            raise ReleaseError(f"{self.root} has no index of its images: build the release again")
        return found[0]["digest"]

    def platforms(self) -> dict[str, str]:
        """The digest of the image of each architecture; empty for an artifact."""
        manifests = self.load(self.digest).get("manifests", [])
        return {each["platform"]["architecture"]: each["digest"] for each in manifests}

    def layers(self, digest: str) -> list[Path]:
        """The layers of one image, lowest first: tar files, compressed with gzip."""
        return [self.blob(each["digest"]) for each in self.load(digest)["layers"]]

    def config(self, digest: str) -> dict[str, Any]:
        """The configuration of one image."""
        return self.load(self.load(digest)["config"]["digest"])

    def problems(self) -> Iterator[str]:
        """The blobs whose content has another digest than their name, and those that are missing."""
        wanted = {self.digest}
        top = self.load(self.digest) if self.blob(self.digest).exists() else {}
        for image in [each["digest"] for each in top.get("manifests", [])] or [self.digest]:
            content = self.load(image) if self.blob(image).exists() else {}
            parts = [content["config"], *content["layers"]] if content else []
            wanted |= {image, *(part["digest"] for part in parts)}
        for digest in sorted(wanted):
            blob = self.blob(digest)
            if not blob.exists() or f"sha256:{sha256(blob)}" != digest:
                yield f"{self.root.name}: {digest}"


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def join(layout: Layout, name: str) -> str:
    """Replace the images at the top by one index of them, in the order of their architectures; return its digest.

    `name`: the reference of the index in the layout. Raises ReleaseError if two images have the same architecture.
    """
    entries = sorted((_entry(layout, each) for each in layout.descriptors()), key=lambda each: str(each["platform"]))
    if len({str(each["platform"]) for each in entries}) != len(entries):
        raise ReleaseError(f"{layout.root} has two images of one architecture: remove it and build again")
    top = layout.add(INDEX, json_bytes({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}))
    layout.write_index(top, name)
    return top["digest"]


def _entry(layout: Layout, descriptor: Mapping[str, Any]) -> dict[str, Any]:
    config = layout.config(descriptor["digest"])
    platform = {"architecture": config["architecture"], "os": config["os"]}
    return {**{key: descriptor[key] for key in ("mediaType", "digest", "size")}, "platform": platform}


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """JSON without spaces; the same content gives the same bytes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def files(layout: Layout, digest: str, *suffixes: str) -> Iterator[tuple[str, bytes]]:
    """The regular files of an image whose path ends so, as path and content; of a path in two layers, the upper one."""
    found: dict[str, bytes] = {}
    for layer in layout.layers(digest):
        with tarfile.open(layer, "r:*") as tar:
            for member in tar:
                path = member.name.removeprefix("./").lstrip("/")
                if member.isfile() and path.endswith(suffixes):
                    stream = tar.extractfile(member)
                    found[path] = stream.read() if stream else b""
    yield from sorted(found.items())
