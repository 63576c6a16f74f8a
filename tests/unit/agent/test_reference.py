"""The metrics have the names, types, labels and values of prometheus/memcached_exporter."""

from typing import Final

import pytest

from memcached_agent.memcached.stats import statistics
from memcached_agent.metrics.exposition import render
from memcached_agent.metrics.families import EXTSTORE, PROXY, PROXY_ONLY, families

from .samples import FOLDER, Samples, reference, replies, samples, types

REFERENCE: Final = (FOLDER / "metrics.txt").read_text()
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


def test_every_metric_has_a_help_text() -> None:
    lines = [line.split(" ", 3) for line in exposed().splitlines() if line.startswith("# HELP ")]
    assert {line[2] for line in lines} == set(types(exposed()))
    assert [line[2] for line in lines if not line[3].endswith(".")] == []


EXTSTORE_STATS: Final = {
    "extstore_compact_lost": "extstore_compact_lost_total counter",
    "extstore_compact_rescues": "extstore_compact_rescued_total counter",
    "extstore_compact_skipped": "extstore_compact_skipped_total counter",
    "extstore_page_allocs": "extstore_pages_allocated_total counter",
    "extstore_page_evictions": "extstore_pages_evicted_total counter",
    "extstore_page_reclaims": "extstore_pages_reclaimed_total counter",
    "extstore_pages_free": "extstore_pages_free gauge",
    "extstore_pages_used": "extstore_pages_used gauge",
    "extstore_objects_evicted": "extstore_objects_evicted_total counter",
    "extstore_objects_read": "extstore_objects_read_total counter",
    "extstore_objects_written": "extstore_objects_written_total counter",
    "extstore_objects_used": "extstore_objects_used gauge",
    "extstore_bytes_evicted": "extstore_bytes_evicted_total counter",
    "extstore_bytes_written": "extstore_bytes_written_total counter",
    "extstore_bytes_read": "extstore_bytes_read_total counter",
    "extstore_bytes_used": "extstore_bytes_used counter",
    "extstore_bytes_fragmented": "extstore_bytes_fragmented gauge",
    "extstore_limit_maxbytes": "extstore_bytes_limit gauge",
    "extstore_io_queue": "extstore_io_queue_depth gauge",
}
PROXY_STATS: Final = {
    "proxy_conn_requests": "proxy_conn_requests_total counter",
    "proxy_conn_errors": "proxy_conn_errors_total counter",
    "proxy_conn_oom": "proxy_conn_oom_total counter",
    "proxy_req_active": "proxy_req_active gauge",
    "proxy_config_reloads": "proxy_config_reloads_total counter",
    "proxy_config_reload_fails": "proxy_config_reload_fails_total counter",
    "proxy_config_cron_runs": "proxy_config_cron_runs_total counter",
    "proxy_config_cron_fails": "proxy_config_cron_fails_total counter",
    "proxy_backend_total": "proxy_backend_total gauge",
    "proxy_backend_marked_bad": "proxy_backend_marked_bad_total counter",
    "proxy_backend_failed": "proxy_backend_failed gauge",
    "proxy_request_failed_depth": "proxy_request_failed_depth_total counter",
}
ALWAYS_REPORTED: Final = {
    "round_robin_fallback": "round_robin_fallback_total counter",
    "unexpected_napi_ids": "unexpected_napi_ids_total counter",
}


@pytest.mark.parametrize(
    ("reported", "others", "rows"),
    [(EXTSTORE_STATS, {}, EXTSTORE), (PROXY_STATS, ALWAYS_REPORTED, PROXY + PROXY_ONLY)],
    ids=["extstore", "proxy"],
)
def test_optional_metrics_exist_if_memcached_reports_them(
    reported: dict[str, str], others: dict[str, str], rows: tuple[object, ...]
) -> None:
    text = exposed("".join(f"STAT {name} {number}\n" for number, name in enumerate(reported, 1)))
    more = types(text).items() - types(exposed()).items()
    assert {f"{name} {kind}" for name, kind in more} == {
        f"memcached_{each}" for each in (*reported.values(), *others.values())
    }
    assert len(rows) == len(reported) + len(others)
    for number, each in enumerate(reported.values(), 1):
        assert samples(text)[f"memcached_{each.split()[0]}", frozenset()] == number


def test_settings_of_a_disabled_crawler_are_left_out() -> None:
    found = reference()
    text = render(families(found._replace(settings=found.settings | {"lru_crawler": "no"}))).decode()
    missing = types(REFERENCE).keys() - NOT_OURS - types(text).keys()
    assert len(missing) == 8
    assert all(name.startswith("memcached_lru_crawler_") for name in missing)
