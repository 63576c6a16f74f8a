"""Each query of the dashboards has data, for the right caches and pods, and problems are shown."""

import re
from typing import Any

import pytest

from dashboards.files import DASHBOARDS
from dashboards.grafana import Dashboard
from grafana.caches import CACHES
from grafana.values import filled
from grafana.world import CACHE, FLEET, World, choices, expressions, panels, selected
from support.kube import eventually
from support.waiting import READY

LABELS = re.compile(r"{{(\w+)}}")
ALL_CACHES = choices(FLEET)[0]
SESSIONS = CACHES[0]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)
def test_every_query_has_data(world: World, dashboard: Dashboard) -> None:
    """Each query for one of the caches, at least: a cache without TLS has no certificate."""
    for title, expr in expressions(dashboard):
        eventually(
            lambda expr=expr: any(world.values(expr, each) for each in choices(dashboard)),
            READY,
            f"{dashboard.uid}: {title}: {expr}",
        )


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda each: each.uid)
def test_legends_use_labels_that_the_series_have(world: World, dashboard: Dashboard) -> None:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            for labels in (
                each["metric"] for values in choices(dashboard) for each in world.values(target["expr"], values)
            ):
                assert set(LABELS.findall(target["legendFormat"])) <= labels.keys(), panel["title"]


def test_variables_offer_what_exists(world: World) -> None:
    for dashboard in DASHBOARDS:
        for variable in dashboard.variables:
            values = choices(dashboard)[0]
            series = world.values(variable.metric, values)
            offered = {each["metric"][variable.label] for each in series}
            if variable.pattern:
                offered = {found[1] for each in offered if (found := re.fullmatch(variable.pattern, each))}
            assert offered
            own = values[variable.name]
            assert own in offered or own == ".*"


def test_table_has_one_line_for_each_cache(world: World) -> None:
    (table,) = [each for each in panels(FLEET) if each["type"] == "table"]
    for target in table["targets"]:
        wanted = {(each.namespace, each.name) for each in CACHES if each.disk or "extstore" not in target["expr"]}
        found: list[Any] = [each["metric"] for each in world.values(target["expr"], ALL_CACHES)]
        assert sorted((each["namespace"], each["cache"]) for each in found) == sorted(wanted), target["expr"]
        assert {*found[0]} == {"namespace", "cache"}
    assert world.stat(FLEET, "Caches", ALL_CACHES) == len(CACHES)


@pytest.mark.parametrize("cache", CACHES, ids=lambda each: each.name)
def test_cache_shows_its_own_pods_only(world: World, cache: Any) -> None:
    (panel,) = [each for each in panels(CACHE) if each["title"] == "Requests of each server"]
    expr = panel["targets"][0]["expr"]
    names = {each.name for each in world.pods_of(cache)}
    assert {each["metric"]["pod"] for each in world.values(expr, selected(cache))} == names
    one = min(names)
    assert {each["metric"]["pod"] for each in world.values(expr, {**selected(cache), "pod": one})} == {one}


def test_sums_count_every_pod_once(world: World) -> None:
    for cache in CACHES:
        found = world.values(
            filled("sum(memcached_up{DASHBOARD})".replace("DASHBOARD", CACHE.selector), selected(cache)), {}
        )
        assert float(found[0]["value"][1]) == len(cache.pods)


def test_problems_are_shown_and_disappear(world: World) -> None:
    pod, values = world.pods_of(SESSIONS)[1], selected(SESSIONS)
    for title in ("Servers down", "Cold servers", "Problems of agents", "Agents down"):
        eventually(world.is_stat(CACHE, title, values, 0), 4 * READY, f"{title}: 0")
    pod.stop()
    eventually(world.is_stat(CACHE, "Servers down", values, 1), READY, "a server does not reply")
    assert world.stat(FLEET, "Servers down", ALL_CACHES) == 1
    pod.restart()
    eventually(world.is_stat(CACHE, "Cold servers", values, 1), READY, "it is cold")
    eventually(world.is_stat(CACHE, "Servers down", values, 0), READY, "it replies")
    eventually(world.is_stat(CACHE, "Cold servers", values, 0), 4 * READY, "it is warm")
