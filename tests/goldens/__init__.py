"""Goldens: for every shape of an object the children it gets, as text that a change of the operator shows up in.

Each file holds an object of ours, then its children. The pod template is a promise: what is in these files for one
release must come from the next one too, byte for byte, or every pod restarts on the day of the upgrade. For a new shape
write a file with the object alone; then, and after a change that is meant:

    PYTHONPATH=tests .venv/bin/python -m goldens
"""

from pathlib import Path
from typing import Any

import yaml

from memcached_operator.appservice.controller import appservice
from memcached_operator.engine.kind import Observed
from memcached_operator.memcached.controller import memcached

Object = dict[str, Any]

FOLDER = Path(__file__).parent
HEADER = "# Written by `PYTHONPATH=tests .venv/bin/python -m goldens` from the first object in this file.\n"
IMAGE = "docker.io/library/memcached:1.6.38"
"""The operator's default of the day, for shapes that name no image."""


KINDS = {"memcached": memcached(IMAGE), "appservice": appservice()}
"""Every kind, by the folder of its goldens."""


def paths(kind: str) -> dict[str, Path]:
    """Every golden of a kind, by the name of its shape."""
    return {path.stem: path for path in sorted((FOLDER / kind).glob("*.yaml"))}


def objects(path: Path) -> list[Object]:
    """What a golden holds: the object first, then its children."""
    return list(yaml.safe_load_all(path.read_text()))


def render(cr: Object) -> str:
    """The text of the golden of an object."""
    return HEADER + "---\n".join(_text(obj) for obj in (cr, *children(cr)))


def children(cr: Object) -> list[Object]:
    """The children of an object of which nothing is there yet."""
    return KINDS[cr["kind"].lower()].desired(cr, Observed())


def _text(obj: Object) -> str:
    return yaml.dump(obj, Dumper=_Dumper, default_flow_style=False, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes what stands in two places twice, instead of a reference to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
