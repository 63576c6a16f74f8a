"""Loads an image into a running cluster."""

import tempfile
from pathlib import Path

from cluster.errors import ClusterError
from cluster.images.build import save_image
from cluster.images.store import images_dir, import_archive
from cluster.paths import State
from cluster.plan import Plan


def load(state: State, plan: Plan, image: str) -> list[str]:
    """Import an archive, or an image from the local builder's storage; returns the names imported.

    Raises ClusterError if the image does not exist. Does nothing in control-plane mode, which runs no containers.
    """
    if plan.mode != "node":
        return []
    if Path(image).is_file():
        return import_archive(state.containerd_socket, Path(image))
    if image.endswith((".tar", ".tgz", ".tar.gz")):
        raise ClusterError(f"there is no file {image}")
    images_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=images_dir()) as scratch:
        archive = Path(scratch) / "image.tar"
        save_image(image, archive)
        return import_archive(state.containerd_socket, archive)
