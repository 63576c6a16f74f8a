"""The memcached releases that the tests start: each in a small directory with its own libraries, made from Debian.

debootstrap installs a Debian release into a directory; memcached and the libraries that it loads are copied from it. A
server changes its root directory to the copy, so the host's release and its libraries do not matter.
"""

import shutil
from pathlib import Path
from typing import Final

from cluster.errors import ClusterError
from cluster.locks import waiting_for
from cluster.paths import cache_dir
from cluster.public.images import ISOLATED, digest
from cluster.public.programs import KEYRING, find, install
from cluster.shell import run

DEBIAN_RELEASES: Final = {"1.6.18": "bookworm", "1.6.38": "trixie"}
"""The Debian release that contains each release of memcached."""
VERSIONS: Final = tuple(DEBIAN_RELEASES)

PROGRAM: Final = "/usr/bin/memcached"
COPY: Final = f"mkdir /copy; ldd {PROGRAM} | grep -o '/[^ ]*' | xargs cp --parents -L -t /copy {PROGRAM}"
"""Copies memcached and its libraries, including the dynamic loader, with their paths."""


def ensure(version: str) -> Path:
    """The root directory of a release; it is created on first use, in about a minute.

    Raises ClusterError if debootstrap is missing or fails, or if Debian contains another release of memcached.
    """
    recipe = [DEBIAN_RELEASES[version], version, COPY]
    target = cache_dir() / "memcached" / f"{version}-{digest(recipe)}"
    with waiting_for(f"memcached-{version}"):
        if not target.exists():
            create(version, target)
    return target


def create(version: str, target: Path) -> None:
    """Install the Debian release, copy memcached from it and remove the rest."""
    install([] if find("debootstrap") and KEYRING.exists() else ["debootstrap", "debian-archive-keyring"])
    system = target.with_name(f"{target.name}.partial")
    shutil.rmtree(system, ignore_errors=True)
    system.mkdir(parents=True)
    try:
        options = ["--variant=minbase", "--include=memcached", DEBIAN_RELEASES[version]]
        run([*ISOLATED, "debootstrap", *options, system], env={"DEBIAN_FRONTEND": "noninteractive"})
        run(["chroot", system, "/bin/sh", "-euc", COPY])
        check(system / "copy", version)
        (system / "copy").rename(target)
    finally:
        shutil.rmtree(system, ignore_errors=True)


def check(root: Path, version: str) -> None:
    """Raise ClusterError unless memcached runs in its directory and has the expected release."""
    found = run(["chroot", root, PROGRAM, "-V"]).split()
    if found != ["memcached", version]:
        raise ClusterError(f"Debian {DEBIAN_RELEASES[version]} contains {' '.join(found)}, not memcached {version}")
