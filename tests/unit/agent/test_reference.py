"""The metrics have the names, types, labels and values of prometheus/memcached_exporter."""

import re
from pathlib import Path
from typing import Final

from memcached_agent.memcached.stats import statistics
from memcached_agent.metrics.exposition import render
from memcached_agent.metrics.families import families

from .samples import FOLDER, Samples, reference, replies, samples, types, value

REFERENCE: Final = (FOLDER / "metrics.txt").read_text()
PAGE: Final = Path(__file__).parents[3] / "docs/monitoring.md"
NOT_OURS: Final = {"memcached_exporter_build_info"}
MOVED: Final = {
    "memcached_connections_total",
    "memcached_current_connections",
    "memcached_process_system_cpu_seconds_total",
    "memcached_process_user_cpu_seconds_total",
    "memcached_read_bytes_total",
    "memcached_written_bytes_total",
}
"""Metrics that the commands between the two samples change."""


def exposed(general: str = "") -> str:
    """Our text for the sample. `general`: more lines in the reply to `stats`."""
    found = replies()
    found["stats"] = general.replace("\n", "\r\n").encode() + found["stats"]
    return render(families(statistics(*found.values()))).decode()


def unmoved(text: str) -> Samples:
    return {key: value for key, value in samples(text).items() if key[0] not in MOVED}


def test_names_and_types_are_those_of_the_exporter() -> None:
    expected = {name: kind for name, kind in types(REFERENCE).items() if name not in NOT_OURS}
    assert len(expected) == 69
    assert types(exposed()) == expected


def test_samples_are_those_of_the_exporter() -> None:
    assert len(unmoved(REFERENCE)) > 600
    assert unmoved(exposed()) == unmoved(REFERENCE)


def test_changing_samples_are_those_of_the_exporter_except_for_their_values() -> None:
    ours, theirs = samples(exposed()), samples(REFERENCE)
    assert ours.keys() == theirs.keys()
    assert {name for name, _ in theirs} >= MOVED
    for key in theirs:
        assert key[0] not in MOVED or ours[key] >= theirs[key] > 0


def test_counters_without_total_are_on_the_page() -> None:
    """Other parsers rename them."""
    text = exposed("STAT extstore_page_allocs 1\nSTAT extstore_bytes_used 1\n")
    renamed = {name for name, kind in types(text).items() if kind == "counter" and not name.endswith("_total")}
    section = PAGE.read_text().partition("### Counters without `_total`\n")[2].partition("|")[0]
    assert set(re.findall(r"`(memcached_\w+)`", section)) == renamed


def test_every_metric_has_a_help_text() -> None:
    lines = [line.split(" ", 3) for line in exposed().splitlines() if line.startswith("# HELP ")]
    assert {line[2] for line in lines} == set(types(exposed()))
    assert [line[2] for line in lines if not line[3].endswith(".")] == []


def test_optional_metrics_exist_if_memcached_reports_them() -> None:
    text = exposed(
        "STAT extstore_page_allocs 5\nSTAT proxy_backend_total 3\nSTAT miss_from_extstore 4\n"
        "STAT get_aborted_extstore 2\nSTAT extstore_memory_pressure 5.08\n"
    )
    assert types(text).items() - types(exposed()).items() == {
        ("memcached_extstore_pages_allocated_total", "counter"),
        ("memcached_extstore_lost_gets_total", "counter"),
        ("memcached_extstore_memory_pressure_percent", "gauge"),
        ("memcached_proxy_backend_total", "gauge"),
        ("memcached_round_robin_fallback_total", "counter"),
        ("memcached_unexpected_napi_ids_total", "counter"),
    }
    assert value(text, "memcached_extstore_pages_allocated_total") == 5
    assert value(text, "memcached_proxy_backend_total") == 3
    assert value(text, "memcached_extstore_lost_gets_total", reason="missing") == 4
    assert value(text, "memcached_extstore_lost_gets_total", reason="aborted") == 2
    assert value(text, "memcached_extstore_memory_pressure_percent") == 5.08


def test_settings_of_a_disabled_crawler_are_left_out() -> None:
    found = reference()
    text = render(families(found._replace(settings=found.settings | {"lru_crawler": "no"}))).decode()
    missing = types(REFERENCE).keys() - NOT_OURS - types(text).keys()
    assert len(missing) == 8
    assert all(name.startswith("memcached_lru_crawler_") for name in missing)
