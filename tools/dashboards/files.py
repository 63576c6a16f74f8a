"""The generated files of config/grafana."""

import json
from typing import Final, cast

from dashboards import cache, fleet, operator_dashboard
from dashboards.grafana import document

DASHBOARDS: Final = (fleet.DASHBOARD, cache.DASHBOARD, operator_dashboard.DASHBOARD)
WIDTH: Final = 120
FOLDER: Final = "config/grafana/dashboards"


def files() -> dict[str, str]:
    """The text of each dashboard, by path below the project's root."""
    return {f"{FOLDER}/{each.uid}.json": json_text(document(each)) + "\n" for each in DASHBOARDS}


def json_text(value: object, indent: int = 0) -> str:
    """A value as JSON: lists and objects that fit into a line of 120 characters are not broken."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= WIDTH:
        return line
    pad = " " * (indent + 2)
    match value:
        case dict():
            entries = cast("dict[str, object]", value).items()
            lines = [f"{pad}{json.dumps(key)}: {json_text(each, indent + 2)}" for key, each in entries]
            return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"
        case list():
            lines = [f"{pad}{json_text(each, indent + 2)}" for each in cast("list[object]", value)]
            return "[\n" + ",\n".join(lines) + "\n" + " " * indent + "]"
        case _:
            return line
