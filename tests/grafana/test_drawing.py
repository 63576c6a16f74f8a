"""Grafana's types accept the files, and Grafana's components draw each panel with data."""

import json
from pathlib import Path

import pytest

from dashboards.files import DASHBOARDS, files
from dashboards.model import Dashboard
from grafana import drawing
from grafana.caches import CACHES
from grafana.drawing import BUILD
from grafana.world import CACHE, World, choices, selected

LATER = {"Predicted hit ratio"}
"""Panels that have data of this cache later. test_queries.py waits for those of a cache with larger items."""
MAX_BYTES = 150 * 1024
"""Size of a picture: those in docs/images are committed."""
RESTART = 0.6
"""When a memcached is killed, as a share of the time before the pictures are drawn."""


@pytest.fixture(scope="session")
def page() -> Path:
    """The built page."""
    return drawing.bundle()


MISTAKES = (
    ('"unit": "percentunit"', '"unti": "percentunit"'),
    ('"drawStyle": "line"', '"drawStyle": "lines"'),
    ('"graphTooltip": 1', '"graphTooltip": 7'),
    ('"noValue": "none"', '"noValue": 0'),
    ('"colorMode": "background_solid"', '"colourMode": "background_solid"'),
    ('"expr": ', '"expression": '),
)
"""Texts in a file, and others with which it is wrong."""


def test_files_have_the_types_of_grafana_and_others_are_errors() -> None:
    right = list(files().values())
    assert [old for old, _ in MISTAKES if old not in right[0]] == []
    wrong = [right[0].replace(*mistake) for mistake in MISTAKES]
    found = drawing.type_errors([*right, *wrong])
    assert {number: text for number, text in found.items() if number < len(right)} == {}
    assert [MISTAKES[number] for number in range(len(wrong)) if len(right) + number not in found] == []


@pytest.fixture(scope="session")
def minutes(world: World, request: pytest.FixtureRequest) -> float:
    """The minutes of load before the pictures are drawn; in between, a memcached loses its items."""
    found = float(str(request.config.getoption("--history")))
    world.wait_until(RESTART * found * 60)
    world.pods_of(CACHES[0])[1].restart()
    world.wait_until(found * 60)
    return found


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)
def test_every_panel_is_drawn_with_data(world: World, page: Path, minutes: float, dashboard: Dashboard) -> None:
    """The pictures are in build/dashboards. Those in docs/images are copies of ones with six minutes of load."""
    values = selected(CACHES[0]) if dashboard is CACHE else choices(dashboard)[0]
    data = drawing.results(world, dashboard, values, minutes)
    picture = BUILD / f"{dashboard.uid}.png"
    (BUILD / f"{dashboard.uid}.data.json").write_text(json.dumps(data))
    found = drawing.draw(page, data, picture)
    assert [title for title, empty in found.items() if empty and title not in LATER] == []
    assert len(found) == len({panel.title for panel in dashboard.panels})
    assert 20_000 < picture.stat().st_size < MAX_BYTES
