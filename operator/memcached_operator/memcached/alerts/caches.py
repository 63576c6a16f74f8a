"""The alerts of caches. The label `cache` is the name of the Memcached.

The same alerts exist for one cache, in its PrometheusRule, and for all caches, in a plain file. The series OWN_RULES
marks the caches with a PrometheusRule: the rules for all caches leave them out, so no alert fires twice.

The samples are those of a container of any image. Expressions aggregate by fixed labels and bound the values of others:
two alerts that differed only in a label which the rule sets, such as `severity`, would be an error in Prometheus, and
none of this rule would fire for any cache.
"""

from collections.abc import Sequence
from typing import Final

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.alerts.rules import SELECTOR, Alert, Severity, alert_rule, marker, unless

GROUP: Final = "memcached"
"""The name of the group of rules."""
OWN_RULES: Final = "memcached_cache_own_rules"
"""1, with the labels `namespace` and `cache`, for a cache with rules of its own."""
RATIO: Final = "cache:memcached_get_hit_ratio:rate1h"
"""The recorded hit ratio of a cache, from 0 to 1."""
PREDICTED: Final = "cache:memcached_predicted_hit_ratio:rate1h"
"""The recorded predictions of the hit ratio, from 0 to 1, by `memory`: how many times the present memory."""
GETS: Final = 'command=~"get|touch"'
"""The matcher of the gets, with those that also set the time to live, as the agent and the plugin count them.

memcached 1.6.18 to 1.6.45 counts `gat` like `touch`, and the hits of `mg` with the flag T, but not its misses.
A `touch` therefore counts as a get.
"""
CACHE: Final = ("namespace", "cache")
_BY: Final = f"by ({', '.join(CACHE)})"
_ON: Final = f"on ({', '.join(CACHE)})"
_BY_POD: Final = f"by ({', '.join(CACHE)}, pod)"
_NAME: Final = "{{ $labels.namespace }}/{{ $labels.cache }}"
_POD: Final = "{{ $labels.namespace }}/{{ $labels.pod }}"
_PERCENT: Final = "{{ $value | humanizePercentage }}"
_DURATION: Final = "{{ $value | humanizeDuration }}"
_GETS: Final = f"memcached_commands_total{{{GETS},{SELECTOR}}}"
_AGENTS: Final = f'up{{container="agent",{SELECTOR}}}'
_UP: Final = f"memcached_up{{{SELECTOR}}}"
_REMAINING: Final = f"(min {_BY} (memcached_agent_certificate_expiration_timestamp_seconds{{{SELECTOR}}}) - time())"

_ABSENT: Final = f"max {_BY} (absent({_AGENTS}))"
_ANSWERED: Final = f"{_ON} max {_BY} (max_over_time({_UP}[1d])) == 1"
"""A server of the cache has answered within a day."""

LOST: Final = "memcached_extstore_lost_gets_total"
"""Gets that memcached counts as hits, and that get no item. Only servers with extstore have this metric."""
RATIO_EXPR: Final = (
    f'sum {_BY} (rate(memcached_commands_total{{{GETS},status="hit",{SELECTOR}}}[1h])'
    f" or -rate({LOST}{{{SELECTOR}}}[1h])) / (sum {_BY} (rate({_GETS}[1h])) > 0)"
)
"""None without gets: a division by 0 would spoil the average of the week."""


def weighted(vector: str, gets: str, cache: Sequence[str] = ()) -> str:
    """The averages of a vector of pods and `memory`, in which each pod counts by its gets.

    `gets`: per second, of each pod. `cache`: the labels of a cache, which both vectors have besides `pod`.
    """
    by, weight = f"sum by ({', '.join((*cache, 'memory'))})", f"on ({', '.join((*cache, 'pod'))}) group_left () {gets}"
    return f"{by} ({vector} * {weight}) / ({by} ({vector} * 0 + {weight}) > 0)"


_PREDICTION: Final = (
    f"max by ({', '.join(CACHE)}, pod, memory)"
    f' (memcached_agent_predicted_hit_ratio{{memory=~"1|1[.]25|1[.]5|2|4",{SELECTOR}}})'
)
PREDICTED_EXPR: Final = weighted(_PREDICTION, f"sum {_BY_POD} (rate({_GETS}[1h]))", CACHE)
"""Each server counts by its gets, as it does in the hit ratio of the cache. Only with `monitoring.insight`."""
RECORDED: Final = {RATIO: RATIO_EXPR, PREDICTED: PREDICTED_EXPR}
"""Expressions of the recording rules, by name. No alert uses the predictions: the size of a cache is a decision."""

YOUNG: Final = 600
"""Seconds since its last use below which the eviction of an item is early."""
WEEK: Final = 7 * 86400
"""Seconds before its end in which a certificate is reported: cert-manager renews one of 90 days 30 days before it."""

QUEUE: Final = 32
"""Requests that wait for the disk: four for each of the 8 threads that extstore has by default."""
MISSING: Final = 'reason="missing",'
"""The matcher of gets whose item is not on the disk."""


def _of_pod(metric: str) -> str:
    """A gauge of each pod."""
    return f"max {_BY_POD} ({metric}{{{SELECTOR}}})"


def grows(series: str) -> str:
    """The series of a counter that has grown in the last 5 minutes, whatever the interval of the scrapes.

    For 5 minutes, a series that Prometheus sees for the first time counts as growing: an alert waits for longer if it
    joins pods, which are scraped at different times.

    `increase` needs two samples in its range. In Prometheus 3, 5 minutes have fewer with scrapes every 3 minutes, and
    with scrapes every 2 minutes of which one is left out. A comparison needs only the last sample, which expires after
    5 minutes.
    """
    return f"({series} > 0 unless {series} == {series} offset 5m)"


def _grows_by_pod(metric: str, labels: str = "") -> str:
    """The pods whose counter grows. `labels`: matchers, which end with a comma."""
    return f"max {_BY_POD} {grows(f'{metric}{{{labels}{SELECTOR}}}')}"


def _mean(histogram: str) -> str:
    """The mean of a histogram of each pod in the last 10 minutes. None without observations."""
    total, count = (f"sum {_BY_POD} (rate({histogram}_{part}{{{SELECTOR}}}[10m]))" for part in ("sum", "count"))
    return f"{total} / ({count} > 0)"


_CONNECTIONS: Final = f"{_of_pod('memcached_current_connections')} / {_of_pod('memcached_agent_usable_connections')}"
"""memcached reserves some of maxConnections for itself, so it rejects clients before all are in use."""

ALERTS: Final = (
    Alert(
        "MemcachedCacheDown",
        Severity.CRITICAL,
        "5m",
        f"max {_BY} ({_UP}) == 0",
        "No server of a cache answers",
        f"No memcached of {_NAME} answers, or the cache has no pod any more.",
        alone=f"{_ABSENT} and {_ANSWERED}",
    ),
    Alert(
        "MemcachedServerDown",
        Severity.WARNING,
        "5m",
        f"max {_BY_POD} ({_UP}) == 0 and {_ON} max {_BY} ({_UP}) == 1",
        "A server of a cache does not answer",
        f"memcached in {_POD} does not answer. Other servers of the cache do.",
    ),
    Alert(
        "MemcachedSlotCold",
        Severity.WARNING,
        "15m",
        f"{_of_pod('memcached_agent_hit_ratio')} < {_of_pod('memcached_agent_target_hit_ratio')}"
        f" and {_of_pod('memcached_agent_warm')} == 1 and sum {_BY_POD} (rate({_GETS}[10m])) >= 1",
        "A slot is cold after its warm-up",
        f"The warm-up of {_POD} has ended, and its hit ratio is still {_PERCENT}.",
    ),
    Alert(
        "MemcachedEvictsYoungItems",
        Severity.WARNING,
        "15m",
        f"sum {_BY} (rate(memcached_slab_items_evicted_total{{{SELECTOR}}}[10m])"
        f" and memcached_slab_items_evicted_time_seconds{{{SELECTOR}}} < {YOUNG}) > 0"
        f" and max {_BY} (memcached_malloced_bytes{{{SELECTOR}}} / memcached_limit_bytes{{{SELECTOR}}}) >= 0.9",
        "A cache is full and evicts items that are in use",
        f'{_NAME} evicts {{{{ $value | printf "%.1f" }}}} items/s that were used in the last 10 minutes.',
    ),
    Alert(
        "MemcachedHitRatioLow",
        Severity.WARNING,
        "30m",
        f"{RATIO}{{{SELECTOR}}} < 0.8 * avg_over_time({RATIO}{{{SELECTOR}}}[1w] offset 1d)"
        f" and last_over_time({RATIO}{{{SELECTOR}}}[1h] offset 8d)"
        f" and sum {_BY} (rate({_GETS}[1h])) >= 1",
        "The hit ratio of a cache has fallen",
        f"The hit ratio of {_NAME} is {_PERCENT}, less than 80 % of its average in the last week.",
    ),
    Alert(
        "MemcachedConnectionsHigh",
        Severity.INFO,
        "10m",
        f"{_CONNECTIONS} > 0.8 <= 0.95",
        "A server uses more than 80 % of its connections",
        f"{_POD} uses {_PERCENT} of its connections.",
    ),
    Alert(
        "MemcachedConnectionsNearLimit",
        Severity.WARNING,
        "5m",
        f"{_CONNECTIONS} > 0.95",
        "A server uses more than 95 % of its connections",
        f"{_POD} uses {_PERCENT} of its connections.",
    ),
    Alert(
        "MemcachedConnectionsRefused",
        Severity.CRITICAL,
        "5m",
        f"{_grows_by_pod('memcached_connections_listener_disabled_total')}"
        f" or {_grows_by_pod('memcached_connections_rejected_total')}",
        "A server rejects connections",
        f"{_POD} has reached maxConnections and rejects new connections.",
    ),
    Alert(
        "MemcachedOutOfMemory",
        Severity.WARNING,
        "8m",
        f"max by ({', '.join(CACHE)}, slab) "
        + grows(f'memcached_slab_items_outofmemory_total{{slab=~"[0-9][0-9]?",{SELECTOR}}}'),
        "A cache has no memory for items of a size",
        f"{_NAME} fails to store items of slab class {{{{ $labels.slab }}}}.",
    ),
    Alert(
        "MemcachedCertificateExpiresSoon",
        Severity.WARNING,
        "10m",
        f"{_REMAINING} > 0 < {WEEK}",
        "The certificate of a cache expires soon",
        f"The certificate of {_NAME} expires in {_DURATION}.",
    ),
    Alert(
        "MemcachedCertificateExpired",
        Severity.CRITICAL,
        "1m",
        f"{_REMAINING} <= 0",
        "The certificate of a cache has expired",
        f"The certificate of {_NAME} has expired. Clients that verify it cannot connect.",
    ),
    Alert(
        "MemcachedReloadFailing",
        Severity.WARNING,
        "15m",
        f"min by ({', '.join(CACHE)}, pod, source)"
        f' (memcached_agent_last_reload_successful{{source=~"certificate|users",{SELECTOR}}}) == 0',
        "The current content of a Secret is not in use",
        f"memcached in {_POD} does not use the current {{{{ $labels.source }}}} of its Secret.",
    ),
    Alert(
        "MemcachedChangeNotInEffect",
        Severity.WARNING,
        "15m",
        f"min {_BY_POD} (memcached_agent_memory_target_reached{{{SELECTOR}}}) == 0"
        f" or min {_BY_POD} (memcached_agent_arguments_in_effect{{{SELECTOR}}}) == 0",
        "memcached runs with other settings than its pod has",
        f"memcached in {_POD} does not have the memory or the arguments of its pod.",
    ),
    Alert(
        "MemcachedExtstoreNotWritable",
        Severity.CRITICAL,
        "1m",
        f"min {_BY_POD} (memcached_agent_extstore_writable{{{SELECTOR}}}) == 0",
        "A server cannot write to the disk of its items",
        f"The agent cannot write to the volume of extstore of {_POD}. Its log has the reason.",
    ),
    Alert(
        "MemcachedExtstoreVolumeTooSmall",
        Severity.WARNING,
        "5m",
        f"{_of_pod('memcached_extstore_bytes_limit')} - {_of_pod('memcached_agent_extstore_file_bytes')}"
        f" - {_of_pod('memcached_agent_extstore_volume_free_bytes')} > 0",
        "The volume of extstore is smaller than its file",
        f"The volume of {_POD} has {{{{ $value | humanize1024 }}}}B less than the file of its items needs.",
    ),
    Alert(
        "MemcachedExtstoreLosesItems",
        Severity.WARNING,
        "15m",
        f"{_grows_by_pod('memcached_extstore_bad_checksums_total')}"
        f" or {_grows_by_pod(LOST, MISSING)} and {_of_pod('memcached_extstore_pages_evicted_total')} == 0",
        "A server loses items on its disk",
        f"{_POD} does not find items again that it has written to its disk.",
    ),
    Alert(
        "MemcachedExtstoreMemoryFull",
        Severity.WARNING,
        "15m",
        f"{_of_pod('memcached_extstore_memory_pressure_percent')} >= 90"
        f" and max {_BY_POD} (rate(memcached_items_evicted_total{{{SELECTOR}}}[10m])) > 0",
        "The headers of items on the disk fill the memory of a server",
        f'{_POD} evicts items. Small ones and headers use {{{{ $value | printf "%.0f" }}}}% of its memory.',
    ),
    Alert(
        "MemcachedExtstoreReadsFail",
        Severity.WARNING,
        "5m",
        _grows_by_pod("memcached_extstore_gets_oom_total"),
        "A server has no memory to read items from its disk",
        f"Gets from {_POD} fail with SERVER_ERROR out of memory.",
    ),
    Alert(
        "MemcachedExtstoreSlow",
        Severity.WARNING,
        "15m",
        f"max {_BY_POD} (avg_over_time(memcached_extstore_io_queue_depth{{{SELECTOR}}}[10m])) > {QUEUE}"
        f" or {_mean('memcached_agent_extstore_probe_seconds')} > 0.5",
        "The disk of a server is slow",
        f"Gets from {_POD} wait for its disk, or a write of 4 KiB takes more than 0.5 s.",
    ),
    Alert(
        "MemcachedAgentDown",
        Severity.WARNING,
        "10m",
        f"max {_BY_POD} ({_AGENTS}) == 0",
        "The metrics of a server are missing",
        "Prometheus cannot scrape the agent of {{ $labels.namespace }}/{{ or $labels.pod $labels.cache }}.",
        alone=f"{_ABSENT} unless {_ANSWERED}",
    ),
)


def rules_of(namespace: str, name: str) -> list[Object]:
    """The rules of one cache, with its marker."""
    labels = {"namespace": namespace, "cache": name}
    matchers = ",".join(f'{label}="{value}"' for label, value in labels.items())
    exprs = {alert: f"{alert.expr} or {alert.alone}" if alert.alone else alert.expr for alert in ALERTS}
    return [
        marker(OWN_RULES, **labels),
        *({"record": name, "expr": expr.replace(SELECTOR, matchers)} for name, expr in RECORDED.items()),
        *(alert_rule(alert, expr.replace(SELECTOR, matchers)) for alert, expr in exprs.items()),
    ]


def rules_of_all() -> list[Object]:
    """The rules of all caches that have none of their own."""

    def others(expr: str) -> str:
        return unless(expr.replace(SELECTOR, 'cache!=""'), OWN_RULES, *CACHE)

    return [
        *({"record": name, "expr": others(expr)} for name, expr in RECORDED.items()),
        *(alert_rule(alert, others(alert.expr)) for alert in ALERTS),
    ]
