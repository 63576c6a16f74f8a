"""The cached image archives, and loading them into a cluster's containerd."""

import tempfile
from pathlib import Path

from cluster.binaries.builds import directory
from cluster.binaries.families import PAUSE_FAMILY
from cluster.binaries.packages import find
from cluster.images import releases
from cluster.images.archive import Layer, layer, pack_files, write_archive
from cluster.images.recipes import BASES, PAUSE_IMAGE, STAND_INS, Image, images_key, rootfs_key
from cluster.images.rootfs import ensure_rootfs, images_dir
from cluster.locks import waiting_for
from cluster.paths import State
from cluster.shell import run

IMPORT_SECONDS = 120.0


def cluster_archive() -> Path:
    """The images that every cluster starts with: pause and the stand-ins."""
    built = [releases.release_dir(image.memcached).name for image in STAND_INS if image.memcached]
    return images_dir() / f"cluster-{images_key(PAUSE_FAMILY.key(), *built)}.tar"


def base_archive() -> Path:
    """The base images of image builds."""
    return images_dir() / f"base-{rootfs_key()}.tar"


def packed() -> bool:
    """Tell whether all archives exist."""
    return cluster_archive().exists() and base_archive().exists()


def ensure_archives() -> None:
    """Write the archives that are missing; requires the pause program."""
    with waiting_for("images"):
        if not packed():
            pack()


def pack() -> None:
    """Write both archives."""
    rootfs = layer(ensure_rootfs())
    with tempfile.TemporaryDirectory(dir=images_dir()) as scratch:
        pause = pack_files(Path(scratch) / "pause.tar", {"pause": (directory(PAUSE_FAMILY) / "pause").read_bytes()})
        stand_ins = [(image, over(rootfs, image, Path(scratch))) for image in STAND_INS]
        write_archive(cluster_archive(), [(PAUSE_IMAGE, [pause]), *stand_ins])
    write_archive(base_archive(), [(BASES, [rootfs])])


def over(rootfs: Layer, image: Image, scratch: Path) -> list[Layer]:
    """The layers of an image: the root file system and the image's own files."""
    target = scratch / f"{len(list(scratch.iterdir()))}.tar"
    files = {name: text.encode() for name, text in image.files.items()}
    if image.memcached:
        name = releases.PROGRAM.removeprefix("/")
        files[name] = (releases.ensure(image.memcached) / name).read_bytes()
    return [rootfs, pack_files(target, files)]


def import_archive(socket: Path, archive: Path) -> list[str]:
    """Import an archive into the kubelet's containerd namespace; returns the images' names."""
    lines = run([*_images(socket), "import", archive], timeout=IMPORT_SECONDS).splitlines()
    return [line.split()[1] for line in lines if line.startswith("unpacking ")]


def remove_images(state: State, registry: str) -> None:
    """Remove the images of a registry from a cluster's node; pods that run keep them."""
    command = _images(state.containerd_socket)
    names = [name for name in run([*command, "ls", "--quiet"]).splitlines() if name.startswith(f"{registry}/")]
    if names:
        run([*command, "rm", *names])


def _images(socket: Path) -> list[str]:
    return [find("ctr") or "ctr", f"--address={socket}", "--namespace=k8s.io", "images"]
