"""The Debian root file system that the images share, made by debootstrap and packed as one layer."""

import shutil
from pathlib import Path

from cluster.images.recipes import PACKAGES, STRIPPED, rootfs_key
from cluster.paths import cache_dir
from cluster.shell import run
from cluster.versions import DEBIAN

ISOLATED = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "--mount-proc"]
"""debootstrap mounts /proc in the new system: in separate namespaces no mount can be left behind."""


def images_dir() -> Path:
    """The directory of packed images."""
    return cache_dir() / "images"


def rootfs_file() -> Path:
    """The packed root file system."""
    return images_dir() / f"rootfs-{rootfs_key()}.tar"


def ensure_rootfs() -> Path:
    """Create the root file system if it does not exist; raises ClusterError with debootstrap's last lines."""
    target = rootfs_file()
    if target.exists():
        return target
    scratch = images_dir() / "rootfs.partial"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        bootstrap(scratch)
        strip(scratch)
        pack(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def bootstrap(folder: Path) -> None:
    """Install Debian's smallest variant and our packages."""
    include = f"--include={','.join(PACKAGES)}"
    run(
        [*ISOLATED, "debootstrap", "--variant=minbase", include, DEBIAN, folder],
        env={"DEBIAN_FRONTEND": "noninteractive"},
    )


def strip(folder: Path) -> None:
    """Empty directories that no container reads."""
    for name in STRIPPED:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True, exist_ok=True)
    for log in (folder / "var/log").rglob("*.log"):
        log.unlink()


def pack(folder: Path, target: Path) -> None:
    """Pack everything but the contents of the directories that a container runtime mounts."""
    partial = target.with_suffix(".partial")
    excluded = [f"--exclude=./{name}/*" for name in ("dev", "proc", "sys", "run", "tmp")]
    run(["tar", "--numeric-owner", "--sort=name", *excluded, "-C", folder, "-cf", partial, "."])
    partial.replace(target)
