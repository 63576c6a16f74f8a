"""The metrics of a memcached server, with the names, types and labels of prometheus/memcached_exporter.

A sample is left out if memcached does not report its value, or reports something that is not a number.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from memcached_agent.memcached.stats import ABORTED, MISSING, Statistics, Stats, number
from memcached_agent.metrics.exposition import Family, Labels, Metric

MAX_VERSION_LENGTH: Final = 64
"""Characters of the version that become the value of a label."""
UP: Final = Metric("memcached_up", "gauge", "Whether memcached replied to this scrape: 1 or 0.")
VERSION: Final = Metric("memcached_version", "gauge", "1, with the version of memcached as label.")


class Row(NamedTuple):
    """A metric, and which statistic is the value of which labels."""

    metric: Metric
    keys: Mapping[str, Labels]


def counter(name: str, key: str, text: str) -> Row:
    """A row for a counter without labels. `key`: the name of the statistic."""
    return Row(Metric(f"memcached_{name}", "counter", text), {key: ()})


def gauge(name: str, key: str, text: str) -> Row:
    """A row for a gauge without labels. `key`: the name of the statistic."""
    return Row(Metric(f"memcached_{name}", "gauge", text), {key: ()})


def _commands(*statistics: str) -> dict[str, Labels]:
    """The labels of statistics such as `get_hits`."""
    labels_by_name: dict[str, Labels] = {}
    for statistic in statistics:
        command, _, status = statistic.partition("_")
        labels_by_name[statistic] = (("command", command), ("status", STATUSES[status]))
    return labels_by_name


STATUSES: Final = {"hits": "hit", "misses": "miss", "badval": "badval"}
SETS: Final = "set_hits"
"""A statistic that memcached does not report: its `cmd_set` minus the `cas` commands, which it counts there too."""
HITS: Final = ("get_hits", "delete_hits", "incr_hits", "decr_hits", "cas_hits", "touch_hits", "cas_badval", SETS)
MISSES: Final = ("get_misses", "delete_misses", "incr_misses", "decr_misses", "cas_misses", "touch_misses")
FLUSHES: Final[dict[str, Labels]] = {"cmd_flush": (("command", "flush"), ("status", "hit"))}

GENERAL: Final = (
    counter("uptime_seconds", "uptime", "Seconds since memcached started."),
    gauge("time_seconds", "time", "Current time of the server, in seconds since 1970."),
    counter("process_user_cpu_seconds_total", "rusage_user", "CPU time that memcached used in user mode."),
    counter("process_system_cpu_seconds_total", "rusage_system", "CPU time that memcached used in the kernel."),
    counter("read_bytes_total", "bytes_read", "Bytes received from the network."),
    counter("written_bytes_total", "bytes_written", "Bytes sent to the network."),
    gauge("current_connections", "curr_connections", "Open connections, including the listening sockets."),
    counter("connections_total", "total_connections", "Connections accepted since the start."),
    counter("connections_rejected_total", "rejected_connections", "Connections refused at the connection limit."),
    counter("connections_yielded_total", "conn_yields", "How often a connection with many requests had to wait."),
    counter(
        "connections_listener_disabled_total", "listen_disabled_num", "How often the connection limit was reached."
    ),
    gauge("accepting_connections", "accepting_conns", "Whether memcached accepts connections: 1 or 0."),
    gauge("current_bytes", "bytes", "Bytes that the stored items use, with those on the disk of extstore."),
    gauge("limit_bytes", "limit_maxbytes", "Bytes that items may use at most."),
    gauge("current_items", "curr_items", "Stored items."),
    counter("items_total", "total_items", "Items stored since the start."),
    counter("items_evicted_total", "evictions", "Items removed before they expired, to store others."),
    counter("items_reclaimed_total", "reclaimed", "Items stored in the memory of an expired one."),
    counter("item_too_large_total", "store_too_large", "Items refused because of their size."),
    counter("item_no_memory_total", "store_no_memory", "Items refused because no memory was free."),
    counter("direct_reclaims_total", "direct_reclaims", "How often a request had to free memory itself."),
    counter("lru_crawler_starts_total", "lru_crawler_starts", "How often the LRU crawler started."),
    counter("lru_crawler_items_checked_total", "crawler_items_checked", "Items that the LRU crawler examined."),
    counter("lru_crawler_reclaimed_total", "crawler_reclaimed", "Expired items that the LRU crawler removed."),
    counter("lru_crawler_moves_to_cold_total", "moves_to_cold", "Items moved to the COLD LRU."),
    counter("lru_crawler_moves_to_warm_total", "moves_to_warm", "Items moved from the COLD to the WARM LRU."),
    counter("lru_crawler_moves_within_lru_total", "moves_within_lru", "Items moved to the front of their LRU."),
    Row(
        Metric("memcached_commands_total", "counter", "Commands by name and result."),
        _commands(*HITS, *MISSES) | FLUSHES,
    ),
)
"""From `stats`."""
TOTALS: Final = (gauge("malloced_bytes", "total_malloced", "Bytes allocated for slab pages."),)
"""From the totals of `stats slabs`."""
SETTINGS: Final = (gauge("max_connections", "maxconns", "Limit of open connections."),)
"""From `stats settings`."""
CRAWLER: Final = (
    gauge("lru_crawler_enabled", "lru_crawler", "Whether the LRU crawler is enabled: 1 or 0."),
    gauge("lru_crawler_sleep", "lru_crawler_sleep", "Microseconds that the LRU crawler sleeps between items."),
    gauge("lru_crawler_to_crawl", "lru_crawler_tocrawl", "Items that one run examines per slab class; 0: all."),
    gauge("lru_crawler_maintainer_thread", "lru_maintainer_thread", "Whether the LRU maintainer runs: 1 or 0."),
    gauge("lru_crawler_hot_percent", "hot_lru_pct", "Percent of a slab class that the HOT LRU may use."),
    gauge("lru_crawler_warm_percent", "warm_lru_pct", "Percent of a slab class that the WARM LRU may use."),
    gauge("lru_crawler_hot_max_factor", "hot_max_factor", "Idle limit of the HOT LRU, relative to the age of COLD."),
    gauge("lru_crawler_warm_max_factor", "warm_max_factor", "Idle limit of the WARM LRU, relative to the age of COLD."),
)
"""From `stats settings`, if the LRU crawler is enabled."""
EXTSTORE: Final = (
    counter("extstore_compact_lost_total", "extstore_compact_lost", "Items lost in a compaction: they were locked."),
    counter("extstore_compact_rescued_total", "extstore_compact_rescues", "Items that a compaction moved."),
    counter("extstore_compact_skipped_total", "extstore_compact_skipped", "Unused items that a compaction dropped."),
    counter("extstore_pages_allocated_total", "extstore_page_allocs", "Pages allocated."),
    counter("extstore_pages_evicted_total", "extstore_page_evictions", "Pages whose items were evicted."),
    counter("extstore_pages_reclaimed_total", "extstore_page_reclaims", "Empty pages that were freed."),
    gauge("extstore_pages_free", "extstore_pages_free", "Pages without items."),
    gauge("extstore_pages_used", "extstore_pages_used", "Pages with at least one item."),
    counter("extstore_objects_evicted_total", "extstore_objects_evicted", "Items evicted from extstore."),
    counter("extstore_objects_read_total", "extstore_objects_read", "Items read from extstore."),
    counter("extstore_objects_written_total", "extstore_objects_written", "Items written to extstore."),
    gauge("extstore_objects_used", "extstore_objects_used", "Items in extstore."),
    counter("extstore_bytes_evicted_total", "extstore_bytes_evicted", "Bytes evicted from extstore."),
    counter("extstore_bytes_written_total", "extstore_bytes_written", "Bytes written to extstore."),
    counter("extstore_bytes_read_total", "extstore_bytes_read", "Bytes read from extstore."),
    counter("extstore_bytes_used", "extstore_bytes_used", "Bytes that items use in extstore."),
    gauge("extstore_bytes_fragmented", "extstore_bytes_fragmented", "Bytes of allocated pages without items."),
    gauge("extstore_bytes_limit", "extstore_limit_maxbytes", "Bytes that extstore may use at most."),
    gauge("extstore_io_queue_depth", "extstore_io_queue", "Requests in the queue of extstore."),
)
"""From `stats`. memcached reports them if extstore is enabled."""
EXTSTORE_ONLY: Final = (
    counter("extstore_gets_total", "get_extstore", "Gets that had to read extstore."),
    counter("extstore_gets_oom_total", "get_oom_extstore", "Gets that failed because no memory was free to read."),
    Row(
        Metric("memcached_extstore_lost_gets_total", "counter", "Gets that count as hits and got no item, by reason."),
        {MISSING: (("reason", "missing"),), ABORTED: (("reason", "aborted"),)},
    ),
    counter("extstore_bad_checksums_total", "badcrc_from_extstore", "Items read from extstore with a wrong checksum."),
    counter("extstore_recached_total", "recache_from_extstore", "Items that moved from extstore to memory again."),
    gauge(
        "extstore_memory_pressure_percent",
        "extstore_memory_pressure",
        "Percent of the memory that small items and headers use.",
    ),
)
"""From `stats`. memcached_exporter has none of these metrics."""
PROXY: Final = (
    counter("proxy_conn_requests_total", "proxy_conn_requests", "Requests that clients sent to the proxy."),
    counter("proxy_conn_errors_total", "proxy_conn_errors", "Errors of connections in the proxy."),
    counter("proxy_conn_oom_total", "proxy_conn_oom", "Failures of the proxy to allocate memory for a connection."),
    gauge("proxy_req_active", "proxy_req_active", "Requests that the proxy is processing."),
    counter("proxy_config_reloads_total", "proxy_config_reloads", "Reloads of the configuration."),
    counter("proxy_config_reload_fails_total", "proxy_config_reload_fails", "Failed reloads of the configuration."),
    counter("proxy_config_cron_runs_total", "proxy_config_cron_runs", "Runs of periodic functions."),
    counter("proxy_config_cron_fails_total", "proxy_config_cron_fails", "Failed runs of periodic functions."),
    gauge("proxy_backend_total", "proxy_backend_total", "Configured backends."),
    counter("proxy_backend_marked_bad_total", "proxy_backend_marked_bad", "How often a backend was marked as bad."),
    gauge("proxy_backend_failed", "proxy_backend_failed", "Failed backends."),
    counter("proxy_request_failed_depth_total", "proxy_request_failed_depth", "Requests refused by a full queue."),
)
"""From `stats`. memcached reports them if it is a proxy."""
PROXY_ONLY: Final = (
    counter("round_robin_fallback_total", "round_robin_fallback", "Connections distributed round-robin."),
    counter("unexpected_napi_ids_total", "unexpected_napi_ids", "Connections with an unexpected NAPI ID."),
)
"""From `stats`. Every memcached reports them; memcached_exporter has them only with `proxy_backend_total`."""
SLAB_ITEMS: Final = (
    gauge("slab_current_items", "number", "Items in this slab class."),
    gauge("slab_items_age_seconds", "age", "Seconds since the oldest item of this slab class was used."),
    gauge("slab_hot_items", "number_hot", "Items in the HOT LRU."),
    gauge("slab_warm_items", "number_warm", "Items in the WARM LRU."),
    gauge("slab_cold_items", "number_cold", "Items in the COLD LRU."),
    gauge("slab_temporary_items", "number_temp", "Items in the TEMP LRU."),
    gauge("slab_hot_age_seconds", "age_hot", "Seconds since the oldest item of the HOT LRU was used."),
    gauge("slab_warm_age_seconds", "age_warm", "Seconds since the oldest item of the WARM LRU was used."),
    counter("slab_mem_requested_bytes", "mem_requested", "Bytes that the items of this slab class requested."),
    counter("slab_items_evicted_total", "evicted", "Items removed before they expired, to store others."),
    counter("slab_items_evicted_nonzero_total", "evicted_nonzero", "Evicted items that had an expiry time."),
    counter("slab_items_evicted_time_seconds", "evicted_time", "Seconds from the last use to the last eviction."),
    counter("slab_items_evicted_unfetched_total", "evicted_unfetched", "Evicted items that were never read."),
    counter("slab_items_expired_unfetched_total", "expired_unfetched", "Expired items that were never read."),
    counter("slab_items_outofmemory_total", "outofmemory", "Items refused because no memory was free."),
    counter("slab_items_tailrepairs_total", "tailrepairs", "Locked items that were released after a long time."),
    counter("slab_items_reclaimed_total", "reclaimed", "Items stored in the memory of an expired one."),
    counter("slab_items_crawler_reclaimed_total", "crawler_reclaimed", "Expired items that the LRU crawler removed."),
    counter("slab_items_moves_to_cold", "moves_to_cold", "Items moved to the COLD LRU."),
    counter("slab_items_moves_to_warm", "moves_to_warm", "Items moved from the COLD to the WARM LRU."),
    counter("slab_items_moves_within_lru", "moves_within_lru", "Items moved to the front of their LRU."),
    Row(
        Metric("memcached_slab_lru_hits_total", "counter", "Items found, by LRU."),
        {f"hits_to_{name[:4]}": (("lru", name),) for name in ("hot", "warm", "cold", "temporary")},
    ),
)
"""From `stats items`, with the label `slab`."""
SLABS: Final = (
    gauge("slab_chunk_size_bytes", "chunk_size", "Bytes of a chunk."),
    gauge("slab_chunks_per_page", "chunks_per_page", "Chunks of a page."),
    gauge("slab_current_pages", "total_pages", "Pages of this slab class."),
    gauge("slab_current_chunks", "total_chunks", "Chunks of this slab class."),
    gauge("slab_chunks_used", "used_chunks", "Chunks that contain an item."),
    gauge("slab_chunks_free", "free_chunks", "Chunks that contain no item."),
    gauge("slab_chunks_free_end", "free_chunks_end", "Chunks of the last page that were never used."),
    Row(Metric("memcached_slab_commands_total", "counter", "Commands by name and result."), _commands(*HITS)),
)
"""From `stats slabs`, with the label `slab`."""


def families(statistics: Statistics) -> Iterator[Family]:
    """All metrics of a server that replied. A family may be empty."""
    general, settings, items, slabs, totals, _, _ = statistics
    yield Family(UP, [((), 1)])
    yield Family(VERSION, [((("version", general.get("version", "")[:MAX_VERSION_LENGTH]),), 1)])
    yield from _plain(
        GENERAL + EXTSTORE + EXTSTORE_ONLY + PROXY, general | _sets(general, "cas_misses", "cas_hits", "cas_badval")
    )
    yield from _plain(PROXY_ONLY if "proxy_backend_total" in general else (), general)
    yield from _plain(TOTALS, totals)
    yield from _plain(SETTINGS, settings)
    yield from _plain(CRAWLER if settings.get("lru_crawler") == "yes" else (), settings)
    yield from _by_slab(SLAB_ITEMS, items)
    with_sets = {slab: stats | _sets(stats, "cas_hits", "cas_badval") for slab, stats in slabs.items()}
    yield from _by_slab(SLABS, with_sets)


def _plain(rows: Sequence[Row], stats: Stats) -> Iterator[Family]:
    for metric, keys in rows:
        yield Family(metric, _samples(keys, stats, ()))


def _by_slab(rows: Sequence[Row], slabs: Mapping[int, Stats]) -> Iterator[Family]:
    labels: dict[int, Labels] = {slab: (("slab", str(slab)),) for slab in slabs}
    for metric, keys in rows:
        samples = [sample for slab, stats in slabs.items() for sample in _samples(keys, stats, labels[slab])]
        yield Family(metric, samples)


def _samples(keys: Mapping[str, Labels], stats: Stats, first: Labels) -> list[tuple[Labels, float]]:
    """The samples of one metric; `first`: the labels before those of the row."""
    return [(first + rest, value) for key, rest in keys.items() if (value := number(stats.get(key))) is not None]


def _sets(stats: Stats, *cas: str) -> dict[str, str]:
    """The statistic SETS; empty if one of the statistics that it follows from is missing."""
    stored, *others = (number(stats.get(key)) for key in ("cmd_set", *cas))
    if stored is None or None in others:
        return {}
    return {SETS: str(max(0, stored - sum(count for count in others if count is not None)))}
