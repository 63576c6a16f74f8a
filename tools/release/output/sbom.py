"""The software bill of materials of an image, as CycloneDX JSON, from the files of the image itself.

https://cyclonedx.org/docs/1.6/json/
"""

import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.parser import HeaderParser
from typing import Any, Final
from urllib.parse import quote

METADATA: Final = ".dist-info/METADATA"
DPKG: Final = "var/lib/dpkg/status"
OS_RELEASE: Final = ("etc/os-release", "usr/lib/os-release")
PYTHON: Final = "/patchlevel.h"
"""Python's own version, where it is not a package of the base image: `#define PY_VERSION "3.13.1"`."""
SUFFIXES: Final = (METADATA, DPKG, *OS_RELEASE, PYTHON)
"""The files that name what an image contains."""
PROJECT: Final = "memcached-operator"

Component = dict[str, Any]


def bill(
    name: str, version: str, digest: str, architecture: str, epoch: int, files: Iterable[tuple[str, bytes]]
) -> Any:
    """The bill of one image. `name`: its repository; `files`: those of the image with SUFFIXES, by path.

    It has the Python packages, the project's own among them, and the Debian packages of the base image. The same image
    has the same bill.
    """
    texts = {path: content.decode(errors="replace") for path, content in files}
    image = quote(name.rpartition("/")[2], safe="")
    reference = f"pkg:oci/{image}@{quote(digest, safe='')}?arch={architecture}&repository_url={quote(name, safe='/')}"
    parts = [*_python(texts), *_interpreter(texts), *_debian(texts, architecture)]
    root = {"type": "container", "bom-ref": reference, "name": name, "version": version, "purl": reference}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{name}@{digest}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "component": {**root, "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}]},
        },
        "components": parts,
        "dependencies": [{"ref": reference, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def _python(texts: dict[str, str]) -> Iterator[Component]:
    """The Python packages: libraries, and the project itself as an application."""
    found = [HeaderParser().parsestr(text) for path, text in texts.items() if path.endswith(METADATA)]
    for head in sorted(found, key=lambda head: str(head["Name"]).lower()):
        kind = "application" if head["Name"] == PROJECT else "library"
        reference = f"pkg:pypi/{str(head['Name']).lower().replace('_', '-')}@{head['Version']}"
        yield _component(kind, head["Name"], head["Version"], reference, head["License-Expression"] or "")


def _interpreter(texts: dict[str, str]) -> Iterator[Component]:
    """Python, of images that built it from its sources."""
    for path, text in texts.items():
        if path.startswith("usr/local/include/python") and (found := _PY_VERSION.search(text)):
            yield _component("application", "python", found[1], f"pkg:generic/python@{found[1]}", "")


_PY_VERSION: Final = re.compile(r'^#define PY_VERSION\s+"([^"]+)"', re.MULTILINE)


def _debian(texts: dict[str, str], architecture: str) -> Iterator[Component]:
    """The packages that dpkg installed in the base image."""
    release = next((values["ID"] for path in OS_RELEASE if "ID" in (values := _assignments(texts.get(path, "")))), "")
    for entry in sorted(texts.get(DPKG, "").split("\n\n")):
        head = HeaderParser().parsestr(entry)
        if head["Package"] and "installed" in str(head["Status"]).split():
            version = quote(str(head["Version"]), safe="")
            reference = (
                f"pkg:deb/{release or 'debian'}/{head['Package']}@{version}?arch={head['Architecture'] or architecture}"
            )
            yield _component("library", head["Package"], head["Version"], reference, "")


def _assignments(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value.strip('"') for name, mark, value in pairs if mark}


def _component(kind: str, name: str, version: str, reference: str, expression: str) -> Component:
    licenses = {"licenses": [{"expression": expression}]} if expression else {}
    return {"type": kind, "bom-ref": reference, "name": name, "version": version, "purl": reference, **licenses}
