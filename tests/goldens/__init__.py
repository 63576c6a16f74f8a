"""Goldens: for every shape of an object the children it gets, as text that a change of the operator shows up in.

Each file holds an object of ours, then its children. For a new shape write a file with the object alone; then, and
after an intended change:

    PYTHONPATH=tests .venv/bin/python -m goldens

`releases/<version>` is never written again. It holds the same shapes as the API server stored them under that release,
defaults included, each with the children that the release applied. Every later release must build the same children,
byte for byte, or all pods are replaced on the day of the upgrade. To freeze a release, with it deployed on a cluster:

    PYTHONPATH=tests .venv/bin/python -m goldens freeze
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from memcached_api.images import Images
from memcached_operator.appservice.controller import appservice
from memcached_operator.kube.resource import Key
from memcached_operator.memcached.controller import memcached
from memcached_operator.memcachedproxy.controller import memcachedproxy
from memcached_operator.world.snapshot import Snapshot

Object = dict[str, Any]

FOLDER = Path(__file__).parent
HEADER = "# Written by `PYTHONPATH=tests .venv/bin/python -m goldens` from the first object in this file.\n"
IMAGE = "docker.io/library/memcached:1.6.38"
"""The operator's default of the day, for shapes that name no image."""


KINDS = {
    "memcached": memcached(Images(IMAGE)),
    "memcachedproxy": memcachedproxy(Images("docker.io/library/memcached:1.6.45")),
    "appservice": appservice(),
}
"""Every kind, by the folder of its goldens."""


def paths(kind: str) -> dict[str, Path]:
    """Every golden of a kind, by the name of its shape."""
    return {path.stem: path for path in sorted((FOLDER / kind).glob("*.yaml"))}


def objects(path: Path) -> list[Object]:
    """What a golden holds: the object first, then its children."""
    return list(yaml.safe_load_all(path.read_text()))


def released() -> dict[str, Path]:
    """Every golden of an earlier release, by release, kind and shape."""
    found = sorted((FOLDER / "releases").glob("*/*/*.yaml"))
    return {str(path.relative_to(FOLDER / "releases").with_suffix("")): path for path in found}


def render(cr: Object) -> str:
    """The text of the golden of an object."""
    return HEADER + text(cr, *children(cr))


def text(*found: Object) -> str:
    """Objects as YAML, each in a document of its own."""
    return "---\n".join(yaml.dump(obj, Dumper=_Dumper, default_flow_style=False, width=120) for obj in found)


def children(cr: Object) -> list[Object]:
    """The children of an object of which nothing is there yet."""
    return list(KINDS[cr["kind"].lower()].plan(snapshot(cr), datetime.now(UTC)).children or ())


def snapshot(cr: Object, children: dict[Key, Object] | None = None) -> Snapshot:
    """An object with these children. A Memcached to which it refers has three slots, which are ready and announced."""
    meta = cr["metadata"]
    found: dict[Key, Any] = {}
    for reference in KINDS[cr["kind"].lower()].references:
        assert reference.reads is not None
        for name in reference.names(cr):
            found[Key(reference.resource, meta["namespace"], name)] = reference.reads(_slots(name, meta["namespace"]))
    status = {"status": {"caches": [{"name": key.name, "servers": 3} for key in found]}} if found else {}
    return Snapshot({**status, **cr}, children or {}, referenced=found)


def _slots(name: str, namespace: str) -> Object:
    """A Memcached with three slots."""
    servers = [f"{name}-{slot}.{name}.{namespace}.svc.cluster.local:11211" for slot in range(3)]
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": "00000000-0000-0000-0000-00000000000f",
            "generation": 1,
        },
        "spec": {"identity": "Stable", "size": 3, "image": "docker.io/library/memcached:1.6.45"},
        "status": {"observedGeneration": 1, "readyReplicas": 3, "servers": servers},
    }


class _Dumper(yaml.SafeDumper):
    """Writes what stands in two places twice, instead of a reference to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
