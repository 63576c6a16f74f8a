"""Writing images in the format of `docker save`, which containerd, buildah, podman and docker all read."""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.images.recipes import ARCHITECTURE, Image


@dataclass(frozen=True)
class Layer:
    """An uncompressed tar file and its SHA-256."""

    file: Path
    sha256: str

    @property
    def member(self) -> str:
        """Its name inside the archive."""
        return f"{self.sha256}.tar"


def layer(file: Path) -> Layer:
    """Hash a tar file."""
    with file.open("rb") as stream:
        return Layer(file, hashlib.file_digest(stream, "sha256").hexdigest())


def pack_files(target: Path, files: dict[str, bytes]) -> Layer:
    """Write a layer of executable files owned by root; the same content gives the same bytes."""
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in sorted(files.items()):
            add(tar, name, content, 0o755)
    return layer(target)


def add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    """Add one file, without a date or an owner's name."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def image_config(image: Image, layers: Sequence[Layer]) -> bytes:
    """The image's configuration; its hash is the image's id."""
    content: dict[str, Any] = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": image.config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{each.sha256}" for each in layers]},
        "history": [{"created": "1970-01-01T00:00:00Z"} for _ in layers],
    }
    return json.dumps(content, sort_keys=True).encode()


def write_archive(target: Path, images: Sequence[tuple[Image, Sequence[Layer]]]) -> None:
    """Write images with their layers, a shared layer once. The file appears complete or not at all."""
    partial = target.with_suffix(".partial")
    manifest: list[dict[str, Any]] = []
    written: set[str] = set()
    with tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as tar:
        for image, layers in images:
            config = image_config(image, layers)
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            add(tar, name, config)
            for each in layers:
                if each.member not in written:
                    tar.add(each.file, each.member, filter=anonymous)
                    written.add(each.member)
            manifest.append({"Config": name, "RepoTags": list(image.names), "Layers": [each.member for each in layers]})
        add(tar, "manifest.json", json.dumps(manifest).encode())
    partial.replace(target)


def anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and date, so that the same content gives the same bytes."""
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info
