"""The layout and the texts of the dashboards."""

import json
from pathlib import Path

import pytest

from dashboards.files import DASHBOARDS, files
from dashboards.grafana import GRID, Dashboard, document
from unit.config.rendered import ROOT, render_directory

ALL = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)


@ALL
def test_panels_fill_each_line_and_do_not_overlap(dashboard: Dashboard) -> None:
    cells: set[tuple[int, int]] = set()
    for panel in document(dashboard)["panels"]:
        place = panel["gridPos"]
        own = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not own & cells, panel["title"]
        cells |= own
    assert cells == {(x, y) for x in range(GRID) for y in range(max(y for _, y in cells) + 1)}


def test_links_between_the_dashboards_have_a_target() -> None:
    uids = {each.uid for each in DASHBOARDS}
    fleet, cache, _ = map(document, DASHBOARDS)
    (table,) = [each for each in fleet["panels"] if each["type"] == "table"]
    (link,) = [
        value
        for override in table["fieldConfig"]["overrides"]
        for each in override["properties"]
        if each["id"] == "links"
        for value in each["value"]
    ]
    target, _, query = link["url"].removeprefix("/d/").partition("?")
    assert target in uids
    set_there = {word.partition("=")[0].removeprefix("var-") for word in query.split("&") if word.startswith("var-")}
    assert set_there == {"namespace", "cache"} <= {each["name"] for each in cache["templating"]["list"]}


def test_config_maps_have_all_dashboards_and_the_label_of_the_sidecar() -> None:
    found = render_directory("config/grafana").of("ConfigMap")
    assert {each["metadata"]["namespace"] for each in found} == {"memcached-operator-system"}
    assert {each["metadata"]["labels"]["grafana_dashboard"] for each in found} == {"1"}
    content = {name: text for each in found for name, text in each["data"].items()}
    assert content == {Path(path).name: text for path, text in files().items()}
    for path in files():
        assert json.loads((ROOT / path).read_text())["uid"] == Path(path).stem
