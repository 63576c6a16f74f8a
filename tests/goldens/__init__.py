"""Goldens: for every shape of a Memcached the children it gets, as text that a change of the operator shows up in.

Each file holds a Memcached, then its Deployment and its Service. The pod template is a promise: what is in these files
for one release must come from the next one too, byte for byte, or every cache restarts on the day of the upgrade. For a
new shape write a file with the Memcached alone; then, and after a change that is meant:

    PYTHONPATH=tests .venv/bin/python -m goldens
"""

from pathlib import Path
from typing import Any

import yaml

from memcached_operator.engine.kind import Observed
from memcached_operator.memcached.controller import desired_with

Object = dict[str, Any]

FOLDER = Path(__file__).parent
HEADER = (
    "# Written by `PYTHONPATH=tests .venv/bin/python -m goldens` from the Memcached, the first object in this file.\n"
)
IMAGE = "docker.io/library/memcached:1.6.38"
"""The operator's default of the day, for shapes that name no image."""


def paths() -> list[Path]:
    """Every golden."""
    return sorted(FOLDER.glob("*.yaml"))


def objects(path: Path) -> list[Object]:
    """What a golden holds: the Memcached first, then its children."""
    return list(yaml.safe_load_all(path.read_text()))


def render(cr: Object) -> str:
    """The text of the golden of a Memcached."""
    return HEADER + "---\n".join(_text(obj) for obj in (cr, *children(cr)))


def children(cr: Object) -> list[Object]:
    """The children of a Memcached of which nothing is there yet."""
    return desired_with(IMAGE)(cr, Observed())


def _text(obj: Object) -> str:
    return yaml.dump(obj, Dumper=_Dumper, default_flow_style=False, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes what stands in two places twice, instead of a reference to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
