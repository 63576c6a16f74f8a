"""Contents of each image. All are stand-ins for images from a registry."""

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, field
from typing import Final

from cluster.versions import DEBIAN

NEWEST_MEMCACHED: Final = "1.6.45"
"""The release that new caches get. Another one: also change RECIPES in releases.py."""

ARCHITECTURE: Final = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
"""This machine's, as images name it."""

LOCAL = "localhost/memcached-operator"
BASE = f"{LOCAL}/base:{DEBIAN}"
BUILD = f"{LOCAL}/build:{DEBIAN}"
PAUSE = f"{LOCAL}/pause:1"

PACKAGES = ("memcached", "python3", "python3-venv", "python3-pip", "ca-certificates")
"""In the root file system that all images but pause share: a runtime for memcached and for the operator, and pip to
build the latter's image with. Debian trixie has memcached 1.6.38 and Python 3.13."""

STRIPPED = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
    "var/lib/apt/lists",
    "var/cache/apt",
)
"""Directories emptied before packing."""

ENTRYPOINT = """#!/bin/sh
# As in the image this one stands in for: options alone mean memcached with these options.
if [ "${1#-}" != "$1" ]; then
    set -- memcached "$@"
fi
exec "$@"
"""


@dataclass(frozen=True)
class Image:
    """One image: its names, its run configuration, and small text files laid over the root file system.

    `memcached`: the release of memcached laid over that of the root file system.
    """

    names: tuple[str, ...]
    config: dict[str, object]
    files: dict[str, str] = field(default_factory=dict[str, str])
    memcached: str = ""


PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def memcached(version: str, *aliases: str, built: bool = False) -> Image:
    """A stand-in for docker.io/library/memcached: this release on Debian. `built`: it is not the one in Debian."""
    names = [f"{LOCAL}/memcached:{version}", *(f"docker.io/library/memcached:{tag}" for tag in (version, *aliases))]
    config: dict[str, object] = {
        "Env": [PATH],
        "User": "11211",
        "Entrypoint": ["docker-entrypoint.sh"],
        "Cmd": ["memcached"],
        "ExposedPorts": {"11211/tcp": {}},
        "Labels": {"org.opencontainers.image.title": f"stand-in for memcached {version}"},
    }
    return Image(tuple(names), config, {"usr/local/bin/docker-entrypoint.sh": ENTRYPOINT}, version if built else "")


NGINX_PROGRAM = """#!/usr/bin/python3
# Answers as the image this one stands in for: the files below one directory, on port 80.
import functools
import http.server
import signal
import sys

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
files = functools.partial(http.server.SimpleHTTPRequestHandler, directory="/usr/share/nginx/html")
http.server.ThreadingHTTPServer(("", 80), files).serve_forever()
"""


def nginx(version: str, *aliases: str) -> Image:
    """A stand-in for docker.io/library/nginx: not nginx at all, but a web server whose page names the version."""
    names = (f"docker.io/library/nginx:{tag}" for tag in (version, *aliases))
    config: dict[str, object] = {
        "Env": [PATH],
        "Cmd": ["nginx"],
        "ExposedPorts": {"80/tcp": {}},
        "Labels": {"org.opencontainers.image.title": f"stand-in for nginx {version}"},
    }
    page = f"<!DOCTYPE html>\n<title>Stand-in for nginx {version}</title>\n<h1>Stand-in for nginx {version}</h1>\n"
    files = {"usr/local/bin/nginx": NGINX_PROGRAM, "usr/share/nginx/html/index.html": page}
    return Image(tuple(names), config, files)


BASES = Image((BASE, BUILD), {"Env": [PATH], "Cmd": ["/bin/sh"]})
PAUSE_IMAGE = Image((PAUSE,), {"Entrypoint": ["/pause"], "User": "65535:65535"})
MEMCACHED = (memcached(NEWEST_MEMCACHED, "1.6", built=True), memcached("1.6.38"))
NGINX = (nginx("1.28"), nginx("1.29"))
STAND_INS = (*MEMCACHED, *NGINX)


def rootfs_key() -> str:
    """A hash of everything that the root file system is built from."""
    return digest([DEBIAN, PACKAGES, STRIPPED, platform.machine()])


def images_key(*programs: str) -> str:
    """A hash of the images loaded into a cluster; `programs` are the keys of the programs built for them."""
    return digest([rootfs_key(), *programs, [asdict(image) for image in (PAUSE_IMAGE, *STAND_INS)]])


def digest(content: object) -> str:
    """A short hash of plain data."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
