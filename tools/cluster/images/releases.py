"""The memcached releases that the images and the tests use, each in a small directory with its own libraries.

Debian releases contain the older ones. The newest is built from Debian's source, with the options of the official
image. memcached and the libraries that it loads are copied from a Debian system. A server changes its root directory to
the copy, so the host's release and its libraries do not matter.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from cluster.binaries.packages import KEYRING, find, install
from cluster.errors import ClusterError
from cluster.images.recipes import NEWEST_MEMCACHED, digest
from cluster.images.rootfs import ISOLATED
from cluster.locks import waiting_for
from cluster.paths import cache_dir
from cluster.shell import run
from cluster.versions import DEBIAN

PROGRAM: Final = "/usr/bin/memcached"
COPY: Final = f"mkdir /copy; ldd {PROGRAM} | grep -o '/[^ ]*' | xargs cp --parents -L -t /copy {PROGRAM}"
"""Copies memcached and its libraries, including the dynamic loader, with their paths."""
DOWNLOAD_SECONDS: Final = 60


@dataclass(frozen=True)
class Recipe:
    """Packages of a Debian release to install, and commands that make memcached of them.

    `source`: a file in the directory of memcached's sources on Debian's mirrors. `sha256`: its hash.
    """

    debian: str
    packages: str = "memcached"
    commands: str = ""
    source: str = ""
    sha256: str = ""


OPTIONS: Final = "--enable-extstore --enable-proxy --enable-sasl --enable-sasl-pwdb --enable-tls"
"""Those of the official image: https://github.com/docker-library/memcached/blob/master/debian/Dockerfile"""
BUILD: Final = f"""
tar -C /tmp --strip-components=1 -xf /tmp/source.tar.xz
cd /tmp
./configure --quiet --prefix=/usr {OPTIONS} --disable-docs --disable-dependency-tracking
make -s -C vendor
make -s -j"$(nproc)" memcached
strip --strip-unneeded -o {PROGRAM} memcached
"""
"""Debian's own build has no extstore. The archive contains Lua."""

RECIPES: Final = {
    "1.6.18": Recipe("bookworm"),
    "1.6.38": Recipe("trixie"),
    NEWEST_MEMCACHED: Recipe(
        DEBIAN,
        "gcc,libc6-dev,make,libevent-dev,libssl-dev,libsasl2-dev,xz-utils",
        BUILD,
        f"memcached_{NEWEST_MEMCACHED}.orig.tar.xz",
        "c383a2ad8f973b627c3de472702f46ee33b402750de4fd2d25cef65a00140110",
    ),
}
"""The sources of the newest one are in Debian unstable."""
VERSIONS: Final = tuple(RECIPES)
"""The oldest first."""
GATE: Final = (VERSIONS[0], VERSIONS[-1])
"""The releases that the gate starts. Campaigns start all."""


def release_dir(version: str) -> Path:
    """The root directory of a release; it need not exist yet."""
    recipe = RECIPES[version]
    key = digest([recipe.debian, recipe.packages, recipe.commands, recipe.sha256, version, COPY])
    return cache_dir() / "memcached" / f"{version}-{key}"


def ensure(version: str) -> Path:
    """The root directory of a release; it is created on first use, in one or two minutes.

    Raises ClusterError if debootstrap is missing or fails, if the sources cannot be downloaded or built, or if Debian
    contains another release of memcached.
    """
    target = release_dir(version)
    with waiting_for(f"memcached-{version}"):
        if not target.exists():
            create(version, target)
    return target


def create(version: str, target: Path) -> None:
    """Install the Debian release, make and copy memcached, and remove the rest."""
    install([] if find("debootstrap") and KEYRING.exists() else ["debootstrap", "debian-archive-keyring"])
    recipe = RECIPES[version]
    system = target.with_name(f"{target.name}.partial")
    shutil.rmtree(system, ignore_errors=True)
    system.mkdir(parents=True)
    try:
        options = ["--variant=minbase", f"--include={recipe.packages}", recipe.debian]
        run([*ISOLATED, "debootstrap", *options, system], env={"DEBIAN_FRONTEND": "noninteractive"})
        if recipe.source:
            (system / "tmp/source.tar.xz").write_bytes(download(mirror(system), recipe))
        run(["chroot", system, "/bin/sh", "-euc", recipe.commands + "\n" + COPY])
        check(system / "copy", version)
        (system / "copy").rename(target)
    finally:
        shutil.rmtree(system, ignore_errors=True)


def mirror(system: Path) -> str:
    """The address of the Debian mirror that a system was installed from."""
    lines = (system / "etc/apt/sources.list").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.startswith("deb "))


def download(mirror: str, recipe: Recipe) -> bytes:
    """The archive of memcached's sources; raises ClusterError if the mirror does not have it."""
    address = f"{mirror.rstrip('/')}/pool/main/m/memcached/{recipe.source}"
    stored = cache_dir() / "downloads" / recipe.source
    if stored.exists():
        content = stored.read_bytes()
    else:
        try:
            with urlopen(address, timeout=DOWNLOAD_SECONDS) as response:  # noqa: S310 - as debootstrap does
                content = response.read()
        except (URLError, TimeoutError) as error:
            raise ClusterError(
                f"cannot download {address}: {error}. Debian keeps only the newest sources: download {recipe.source} "
                f"from an archive of Debian, save it as {stored}, and run this again"
            ) from error
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_bytes(content)  # Debian removes it when there is a newer one
    found = hashlib.sha256(content).hexdigest()
    if found != recipe.sha256:
        raise ClusterError(
            f"{stored} has the SHA-256 {found} instead of {recipe.sha256}: remove it, and run this again"
        )
    return content


def check(root: Path, version: str) -> None:
    """Raise ClusterError unless memcached runs in its directory and has the expected release."""
    found = run(["chroot", root, PROGRAM, "-V"]).split()
    if found != ["memcached", version]:
        raise ClusterError(f"Debian {RECIPES[version].debian} contains {' '.join(found)}, not memcached {version}")
