"""The generated files of config/grafana."""

import json
from pathlib import Path
from typing import Final

from dashboards import cache, fleet, operator_dashboard
from dashboards.grafana import document

DASHBOARDS: Final = (fleet.DASHBOARD, cache.DASHBOARD, operator_dashboard.DASHBOARD)
FOLDER: Final = Path("config/grafana/dashboards")


def files() -> dict[Path, str]:
    """The text of each dashboard, by path below the project's root."""
    return {
        FOLDER / f"{each.uid}.json": json.dumps(document(each), indent=2, ensure_ascii=False) + "\n"
        for each in DASHBOARDS
    }
