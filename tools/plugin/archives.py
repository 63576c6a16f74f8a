"""The executable, the archive and the manifest as bytes: the same files give the same bytes."""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from typing import Final

from project.yaml_text import yaml_of

PROGRAM: Final = "kubectl-memcached"
PLUGIN: Final = "memcached"
"""The name in krew, and after `kubectl`."""
LICENSE: Final = "LICENSE"
PACKAGE: Final = "kubectl_memcached"
SHEBANG: Final = b"#!/usr/bin/env python3\n"
OLDEST: Final = (3, 11)
"""`requires-python` of pyproject.toml."""
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The date of each file: the earliest that a ZIP archive can have."""

MAIN: Final = f"""\
# Older than the rest: it must say that a Python is too old.
import sys

if sys.version_info < {OLDEST}:
    found = "%d.%d" % sys.version_info[:2]
    sys.exit("kubectl memcached needs Python {OLDEST[0]}.{OLDEST[1]} or newer, but python3 is " + found)

from {PACKAGE}.__main__ import main

main()
"""

DESCRIPTION: Final = """\
Shows a cache of memcached-operator with its conditions, the remedies for its
problems, and one row for each pod: memory, hit ratio, evictions, connections,
warmth and certificate. Finds the pods that hold a key, clients that do not
agree on it, and hot keys. Restarts, pauses, resumes and flushes caches, and
collects a report without keys and Secrets.
kubectl is the only transport, so contexts, logins and rights are yours.
"""
CAVEATS: Final = """\
It needs Python 3.11 or newer as python3 in PATH.
"""


def executable(files: Mapping[str, bytes], version: str) -> bytes:
    """A ZIP archive that python3 runs. `files`: path → content of the packages."""
    contents = {**files, "__main__.py": MAIN.encode(), f"{PACKAGE}/VERSION": f"{version}\n".encode()}
    buffer = io.BytesIO()
    buffer.write(SHEBANG)
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(contents):
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix, on every platform
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, contents[path])
    return buffer.getvalue()


def tarball_name(version: str) -> str:
    """The file name of the archive."""
    return f"{PROGRAM}-{version}.tar.gz"


def manifest(version: str, archive: bytes, repository: str) -> str:
    """krew's manifest of a release. `repository`: the URL of the project."""
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
        "uri": f"{repository}/releases/download/v{version}/{tarball_name(version)}",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "files": [{"from": PROGRAM, "to": "."}, {"from": LICENSE, "to": "."}],
        "bin": PROGRAM,
    }
    plugin = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": PLUGIN},
        "spec": {
            "version": f"v{version}",
            "homepage": repository,
            "shortDescription": "Show and operate memcached caches",
            "description": DESCRIPTION,
            "caveats": CAVEATS,
            "platforms": [platform],
        },
    }
    return yaml_of(plugin)
