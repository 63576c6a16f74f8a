"""Series for which alerts fire or stay silent. tests/integration/test_alerts.py evaluates the rules over them.

Each case starts from a healthy cache and a healthy operator. It lists every alert that fires at its end, so each case
also tests that all other alerts are silent.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from alerts.operators import ALERTS as OF_OPERATOR
from alerts.proxies import ALERTS as OF_PROXIES
from memcached_operator.memcached.alerts.caches import ALERTS as OF_CACHES

POD: Final = (
    'namespace="shop",cache="sessions",pod="sessions-0",container="agent",job="shop/sessions",instance="a:9150"'
)
OTHER: Final = POD.replace("sessions-0", "sessions-1").replace("a:", "b:")
MANAGER: Final = 'job="controller-manager",instance="c:8383"'
STANDBY: Final = MANAGER.replace("c:", "e:")
WEBHOOK: Final = 'job="webhook",instance="d:8383"'
ALERTS: Final = {alert.name: alert for alert in (*OF_CACHES, *OF_PROXIES, *OF_OPERATOR)}
DAY: Final = 86400

CACHE: Final = {"namespace": "shop", "cache": "sessions"}
"""The labels of an alert about a cache."""

Series = Mapping[str, str]
"""The values of series by name with labels, in promtool's notation: `1+2x3` is 1 3 5 7."""

IMAGES: Final = f"memcached_operator_outdated_images{{{MANAGER}}}"
PROBLEM_IMAGES: Final = f"memcached_operator_problem_images{{{MANAGER}}}"
EXPIRY: Final = f"memcached_webhooks_certificate_expiry_timestamp_seconds{{{WEBHOOK}}}"
HEALTHY: Final[Mapping[str, str]] = {
    f"up{{{POD}}}": "1",
    f"memcached_up{{{POD}}}": "1",
    f'leader_election_master_status{{name="memcached-operator",{MANAGER}}}': "1",
    IMAGES: "0",
    PROBLEM_IMAGES: "0",
    f"memcached_operator_outdated_agents{{{MANAGER}}}": "0",
    EXPIRY: f"{60 * DAY}",
}
"""Constant series, by their value."""


class Case(NamedTuple):
    """Series, and the alerts that fire after `minutes`: their labels and descriptions by name.

    `interval`: minutes between two evaluations, and between two samples. `alone`: only with the rules of the cache
    itself. `recorded`: the predictions that the rules record at the end, by `memory`; empty: they are not compared.
    `scrapes`: minutes between two samples; 0: `interval`. `steady`: for so many minutes before, the same alerts fire.
    """

    series: Series
    minutes: int
    firing: Mapping[str, tuple[Mapping[str, str], str]] = {}
    interval: int = 1
    alone: bool = False
    recorded: Mapping[str, float] = {}
    scrapes: int = 0
    steady: int = 0


def _labels(text: str) -> dict[str, str]:
    """The labels of a series."""
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


def _of_pod(pod: str) -> dict[str, str]:
    """The labels of an alert about a pod."""
    return {name: value for name, value in _labels(pod).items() if name in ("namespace", "cache", "pod")}


def _gets(rate: int, hits: int, pod: str = POD) -> Series:
    """Gets per minute, and those among them that hit."""
    commands = f'memcached_commands_total{{command="get",{pod}'
    return {f'{commands},status="hit"}}': f"0+{hits}x120", f'{commands},status="miss"}}': f"0+{rate - hits}x120"}


def _predictions(pod: str = POD, **ratios: float) -> Series:
    """Predicted hit ratios of a server. `ratios`: by the memory, such as `x2` for twice the memory."""
    metric = "memcached_agent_predicted_hit_ratio"
    return {f'{metric}{{memory="{memory.lstrip("x")}",{pod}}}': f"{ratio}+0x60" for memory, ratio in ratios.items()}


def _slot(ratio: float, warm: int, rate: int = 120) -> Series:
    return {
        f"memcached_agent_hit_ratio{{{POD}}}": f"{ratio}+0x60",
        f"memcached_agent_target_hit_ratio{{{POD}}}": "0.8+0x60",
        f"memcached_agent_warm{{{POD}}}": f"{warm}+0x60",
        **_gets(rate, rate // 2),
    }


def _evictions(age: int, used: float = 0.95) -> Series:
    return {
        f'memcached_slab_items_evicted_total{{slab="5",{POD}}}': "0+600x60",
        f'memcached_slab_items_evicted_time_seconds{{slab="5",{POD}}}': f"{age}+0x60",
        f"memcached_malloced_bytes{{{POD}}}": f"{used * 1000:g}+0x60",
        f"memcached_limit_bytes{{{POD}}}": "1000+0x60",
    }


def _connections(number: int) -> Series:
    return {
        f"memcached_current_connections{{{POD}}}": f"{number}+0x60",
        f"memcached_agent_usable_connections{{{POD}}}": "1000+0x60",
    }


def _certificate(seconds: int) -> Series:
    return {f"memcached_agent_certificate_expiration_timestamp_seconds{{{POD}}}": f"{seconds}+0x60"}


def _week(days: int, gets: int, hits_now: int) -> Series:
    """Samples every half hour: days with 90 % hits, then 6 hours with others, of `gets` in half an hour."""
    before, good = 48 * days, round(gets * 0.9)
    commands = f'memcached_commands_total{{command="get",{POD}'
    now = {"hit": hits_now, "miss": gets - hits_now}
    return {
        f'{commands},status="{status}"}}': f"0+{each}x{before} {each * before + now[status]}+{now[status]}x12"
        for status, each in {"hit": good, "miss": gets - good}.items()
    }


def _reconciles(failed: int) -> Series:
    controller = f'controller="memcached",{MANAGER}'
    return {
        f"controller_runtime_reconcile_errors_total{{{controller}}}": f"0+{failed}x60",
        f'controller_runtime_reconcile_total{{result="error",{controller}}}': f"0+{failed}x60",
        f'controller_runtime_reconcile_total{{result="success",{controller}}}': f"0+{60 - failed}x60",
    }


def _retries(objects: int) -> Series:
    """Objects that fail every 4 minutes, while nothing else is reconciled."""
    values = " ".join(f"{objects * count}+0x3" for count in range(30))
    controller = f'controller="memcached",{MANAGER}'
    return {
        f"controller_runtime_reconcile_errors_total{{{controller}}}": values,
        f'controller_runtime_reconcile_total{{result="error",{controller}}}': values,
    }


def _of_another_operator(series: Series) -> Series:
    return {name.replace("c:8383", "other:1"): values for name, values in series.items()}


def _of_a_cache(series: Series) -> Series:
    """The same series, which the container of a cache reports as those of a controller."""
    images = f"memcached_operator_outdated_images{{{POD}}}"
    return {name.replace(MANAGER, POD): values for name, values in series.items()} | {images: "9+0x60"}


def _queue(values: str) -> Series:
    return {f'workqueue_depth{{name="memcached",{MANAGER}}}': values}


def _denials(values: str) -> Series:
    return {f'memcached_webhooks_denials_total{{webhook="/w",reason="Invalid",{WEBHOOK}}}': values}


EXPIRES: Final = "When it expires, Memcacheds and AppServices cannot be created or changed."
FIRING: Final[Mapping[str, Case]] = {
    "every memcached is down": Case(
        {f"memcached_up{{{POD}}}": "0+0x60"},
        10,
        {"MemcachedCacheDown": (CACHE, "No memcached of shop/sessions answers, or the cache has no pod any more.")},
    ),
    "all pods have disappeared": Case(
        {f"up{{{POD}}}": "1+0x20 stale", f"memcached_up{{{POD}}}": "1+0x20 stale"},
        40,
        {"MemcachedCacheDown": (CACHE, "No memcached of shop/sessions answers, or the cache has no pod any more.")},
        alone=True,
    ),
    "no pod was ever scraped": Case(
        {f"up{{{POD}}}": "_x60", f"memcached_up{{{POD}}}": "_x60"},
        20,
        {"MemcachedAgentDown": (CACHE, "Prometheus cannot scrape the agent of shop/sessions.")},
        alone=True,
    ),
    "one of two is down": Case(
        {f"memcached_up{{{OTHER}}}": "0+0x60", f"up{{{OTHER}}}": "1+0x60"},
        10,
        {
            "MemcachedServerDown": (
                _of_pod(OTHER),
                "memcached in shop/sessions-1 does not answer. Other servers of the cache do.",
            )
        },
    ),
    "a container reports series that differ in a label of the rule": Case(
        {f'memcached_up{{{OTHER},severity="{each}"}}': "0+0x60" for each in "ab"} | {f"up{{{OTHER}}}": "1+0x60"},
        10,
        {
            "MemcachedServerDown": (
                _of_pod(OTHER),
                "memcached in shop/sessions-1 does not answer. Other servers of the cache do.",
            )
        },
    ),
    "a slot is cold after its warm-up": Case(
        _slot(0.5, 1),
        40,
        {
            "MemcachedSlotCold": (
                _of_pod(POD),
                "The warm-up of shop/sessions-0 has ended, and its hit ratio is still 50%.",
            )
        },
    ),
    "full, and young items are evicted": Case(
        _evictions(60),
        40,
        {
            "MemcachedEvictsYoungItems": (
                CACHE,
                "shop/sessions evicts 10.0 items/s that were used in the last 10 minutes.",
            )
        },
    ),
    "the hit ratio falls": Case(
        _week(9, 3600, 1800),
        9 * 1440 + 240,
        {
            "MemcachedHitRatioLow": (
                CACHE,
                "The hit ratio of shop/sessions is 50%, less than 80 % of its average in the last week.",
            )
        },
        interval=30,
    ),
    "extstore loses items that memcached counts as hits": Case(
        {
            **_week(9, 3600, 3240),
            f'memcached_extstore_lost_gets_total{{reason="missing",{POD}}}': f"0+0x{48 * 9} 1440+1440x12",
        },
        9 * 1440 + 240,
        {
            "MemcachedHitRatioLow": (
                CACHE,
                "The hit ratio of shop/sessions is 50%, less than 80 % of its average in the last week.",
            ),
        },
        interval=30,
    ),
    "more than 80 % of the connections": Case(
        _connections(900),
        30,
        {"MemcachedConnectionsHigh": (_of_pod(POD), "shop/sessions-0 uses 90% of its connections.")},
    ),
    "more than 95 % of the connections": Case(
        _connections(980),
        30,
        {"MemcachedConnectionsNearLimit": (_of_pod(POD), "shop/sessions-0 uses 98% of its connections.")},
    ),
    **{
        f"connections {name}": Case(
            {f"memcached_connections_{name}_total{{{POD}}}": "0+1x60"},
            30,
            {
                "MemcachedConnectionsRefused": (
                    _of_pod(POD),
                    "shop/sessions-0 has reached maxConnections and rejects new connections.",
                )
            },
        )
        for name in ("rejected", "listener_disabled")
    },
    "a slab class has no memory": Case(
        {f'memcached_slab_items_outofmemory_total{{slab="7",{POD}}}': "0+1x60"},
        30,
        {"MemcachedOutOfMemory": (CACHE | {"slab": "7"}, "shop/sessions fails to store items of slab class 7.")},
    ),
    "the certificate has 6 days": Case(
        _certificate(6 * DAY + 1800),
        30,
        {"MemcachedCertificateExpiresSoon": (CACHE, "The certificate of shop/sessions expires in 6d 0h 0m 0s.")},
    ),
    "the certificate has expired": Case(
        _certificate(600),
        30,
        {
            "MemcachedCertificateExpired": (
                CACHE,
                "The certificate of shop/sessions has expired. Clients that verify it cannot connect.",
            )
        },
    ),
    "users are not reloaded": Case(
        {f'memcached_agent_last_reload_successful{{source="users",{POD}}}': "0+0x60"},
        30,
        {
            "MemcachedReloadFailing": (
                _of_pod(POD) | {"source": "users"},
                "memcached in shop/sessions-0 does not use the current users of its Secret.",
            )
        },
    ),
    **{
        f"{name} is 0": Case(
            {f"memcached_agent_{name}{{{POD}}}": "0+0x60"},
            30,
            {
                "MemcachedChangeNotInEffect": (
                    _of_pod(POD),
                    "memcached in shop/sessions-0 does not have the memory or the arguments of its pod.",
                )
            },
        )
        for name in ("memory_target_reached", "arguments_in_effect")
    },
    "an agent is down": Case(
        {f"up{{{OTHER}}}": "0+0x60"},
        30,
        {"MemcachedAgentDown": (_of_pod(OTHER), "Prometheus cannot scrape the agent of shop/sessions-1.")},
    ),
    "no leader": Case(
        {f'leader_election_master_status{{name="memcached-operator",{MANAGER}}}': "0+0x60"},
        30,
        {
            "MemcachedOperatorNoLeader": (
                {},
                "Caches keep running, but changes of Memcacheds and AppServices have no effect.",
            )
        },
    ),
    "no leader, and a container of a cache reports one": Case(
        {
            f'leader_election_master_status{{name="memcached-operator",{MANAGER}}}': "0+0x60",
            f'leader_election_master_status{{name="memcached-operator",{POD}}}': "1+0x60",
            f"memcached_operator_own_rules{{{POD}}}": "1+0x60",
        },
        30,
        {
            "MemcachedOperatorNoLeader": (
                {},
                "Caches keep running, but changes of Memcacheds and AppServices have no effect.",
            )
        },
    ),
    "a fifth of the reconciliations fails": Case(
        _reconciles(12),
        40,
        {
            "MemcachedOperatorReconcileErrors": (
                {"controller": "memcached"},
                "20% of the reconciliations of memcached fail.",
            )
        },
    ),
    "the queue does not become shorter": Case(
        _queue("5+0x60"),
        40,
        {
            "MemcachedOperatorQueueNotDraining": (
                {"name": "memcached"},
                "At least 5 objects have waited for the controller for 10 minutes.",
            )
        },
    ),
    "the webhook's certificate has 6 days": Case(
        {EXPIRY: f"{6 * DAY}+0x60"}, 30, {"MemcachedOperatorWebhookCertificate": ({}, EXPIRES)}
    ),
    "the webhook cannot read its certificate": Case(
        {f"memcached_webhooks_certificate_last_read_successful{{{WEBHOOK}}}": "0+0x60"},
        30,
        {"MemcachedOperatorWebhookCertificate": ({}, EXPIRES)},
    ),
    "admission rejects more and more": Case(
        _denials("0+60x60"),
        40,
        {"MemcachedOperatorRejectionsRising": ({"webhook": "/w"}, "The webhook /w rejects 1.0 requests/s.")},
    ),
    "three caches have known problems, and two others are outdated": Case(
        {IMAGES: "5+0x6000", PROBLEM_IMAGES: "3+0x6000"},
        2880,
        {
            "MemcachedOperatorProblemImages": (
                {},
                "3 caches or proxies run a memcached that can crash or damage memory. Their status has details.",
            )
        },
        interval=30,
    ),
    "two caches are outdated for two days": Case(
        {IMAGES: "2+0x6000"},
        2880,
        {
            "MemcachedOperatorOutdatedImages": (
                {},
                "2 caches or proxies do not run the default images of the operator's release.",
            )
        },
        interval=30,
    ),
}
"""Each alert at least once."""

SILENT: Final[Mapping[str, Case]] = {
    "evictions of 6 minutes": Case(
        {**_evictions(60), f'memcached_slab_items_evicted_total{{slab="5",{POD}}}': "0+0x10 600+600x5 3600+0x44"},
        50,
        steady=40,
    ),
    "two pods with an old failure are seen one after the other": Case(
        {
            f'memcached_slab_items_outofmemory_total{{slab="7",{POD}}}': "_x20 3+0x40",
            f'memcached_slab_items_outofmemory_total{{slab="7",{OTHER}}}': "_x22 3+0x40",
        },
        50,
        steady=40,
    ),
    "healthy": Case({}, 60),
    "a memcached is restarted": Case({f"memcached_up{{{POD}}}": "1+0x20 0+0x3 1+0x30"}, 25),
    "pods are replaced": Case({f"up{{{POD}}}": "1+0x20 _x3 1+0x30", f"memcached_up{{{POD}}}": "1+0x20 _x3 1+0x30"}, 25),
    "two servers with predictions": Case(
        {
            **_gets(60, 30),
            **_gets(180, 170, OTHER),
            **_predictions(x1=0.5, x2=0.7, x9=1.0),
            **_predictions(OTHER, x1=0.9),
        },
        60,
        recorded={"1": (60 * 0.5 + 180 * 0.9) / 240, "2": 0.7},
    ),
    "a slot warms up": Case(_slot(0.5, 0), 40),
    "a slot is warm": Case(_slot(0.81, 1), 40),
    "a cold slot without traffic": Case(_slot(0.5, 1, rate=10), 40),
    "old items are evicted": Case(_evictions(7200), 40),
    "young items are evicted while memory is free": Case(_evictions(60, used=0.5), 40),
    "the hit ratio falls a little": Case(_week(9, 3600, 2880), 9 * 1440 + 240, interval=30),
    "the hit ratio falls on the seventh day": Case(_week(7, 3600, 1800), 7 * 1440 + 240, interval=30),
    "the hit ratio falls with less than 1 request/s": Case(_week(9, 1440, 720), 9 * 1440 + 240, interval=30),
    "a change that takes 10 minutes": Case({f"memcached_agent_memory_target_reached{{{POD}}}": "0+0x10 1+0x50"}, 20),
    "80 % of the connections": Case(_connections(800), 30),
    "refused connections in the past": Case({f"memcached_connections_rejected_total{{{POD}}}": "0+9x10 99+0x60"}, 40),
    "no memory for one item": Case({f'memcached_slab_items_outofmemory_total{{slab="7",{POD}}}': "0+0x20 1+0x60"}, 26),
    "a container reports slab classes that do not exist": Case(
        {f'memcached_slab_items_outofmemory_total{{slab="{each}",{POD}}}': "0+1x60" for each in ("100", "a")}, 30
    ),
    "the certificate has 8 days": Case(_certificate(8 * DAY), 30),
    "files are loaded": Case({f'memcached_agent_last_reload_successful{{source="users",{POD}}}': "1+0x60"}, 30),
    "an agent is restarted": Case({f"up{{{OTHER}}}": "1+0x10 0+0x5 1+0x60"}, 16),
    "the leader changes": Case(
        {
            f'leader_election_master_status{{name="memcached-operator",{MANAGER}}}': "1+0x10 0+0x60",
            f'leader_election_master_status{{name="memcached-operator",{STANDBY}}}': "0+0x12 1+0x60",
        },
        30,
    ),
    "some reconciliations fail": Case(_reconciles(3), 40),
    "two objects fail, at the longest delay between retries": Case(_retries(2), 100),
    "reconciliations of another operator fail": Case(_of_another_operator(_reconciles(30)), 40),
    "a container of a cache reports failed reconciliations": Case(_of_a_cache(_reconciles(30)), 40),
    "a container of a cache reports a queue": Case(_of_a_cache(_queue("5+1x60")), 40),
    "the queue drains": Case(_queue("600-10x60"), 40),
    "the queue of another operator grows": Case(_of_another_operator(_queue("5+1x60")), 40),
    "the webhook's certificate has 30 days": Case({EXPIRY: f"{30 * DAY}+0x60"}, 30),
    "admission rejects as many as always": Case(_denials("0+300x300"), 1500, interval=5),
    "images are outdated since an hour": Case({IMAGES: "0+0x50 2+0x4"}, 1560, interval=30),
}
"""The nearest states in which each alert is silent."""
