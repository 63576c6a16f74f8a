"""Scripts of requests for which the simulated API server must respond as a real one does."""

from collections.abc import Mapping
from typing import Final

from integration import api_children, api_objects
from integration.api_steps import Step

SCRIPTS: Final[Mapping[str, list[Step]]] = {**api_children.SCRIPTS, **api_objects.SCRIPTS}
