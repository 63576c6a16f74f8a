"""Series of proxies for which alerts fire or stay silent, as in support.alerting."""

from collections.abc import Mapping
from typing import Final

from support.alerting import CACHE, MANAGER, POD, STANDBY, Case, Series

LABELS: Final = {"namespace": "shop", "proxy": "front"}
"""The labels of an alert about a proxy."""
FRONT: Final = POD.replace("sessions", "front")
_CONTROLLER: Final = 'proxy_namespace="shop",proxy="front",namespace="memcached-operator-system"'


def _proxy(ready: str, up_to_date: str, manager: str = MANAGER) -> Series:
    """The gauges of the controller."""
    return {
        f"memcached_operator_proxy_ready_pods{{{_CONTROLLER},{manager}}}": ready,
        f"memcached_operator_proxy_up_to_date{{{_CONTROLLER},{manager}}}": up_to_date,
    }


def _unreachable(values: str) -> Series:
    return {
        f"memcached_agent_proxy_servers_unreachable{{{FRONT}}}": values,
        f"up{{{FRONT}}}": "1+0x60",
        f"memcached_up{{{FRONT}}}": "1+0x60",
    }


def _refused(values: str, proxy: str = FRONT) -> Series:
    return {f"memcached_agent_proxy_scaling_refused_total{{{proxy}}}": values}


_WAITS: Final = (
    'memcached_operator_scaling_waiting_since_timestamp_seconds{memcached_namespace="shop",memcached="sessions"'
)


def _waits(since: str, others: str = f'namespace="memcached-operator-system",{MANAGER}') -> Series:
    """The gauge of the controller. `since`: seconds after the start of a case."""
    return {f"{_WAITS},{others}}}": since}


_NOT_UP_TO_DATE: Final = (
    "Pods of shop/front are not ready, or do not have its spec or the slots of its Memcached, or it is Degraded."
)
FIRING: Final[Mapping[str, Case]] = {
    "no proxy is ready": Case(
        _proxy("0+0x60", "0+0x60"),
        40,
        {"MemcachedProxyDown": (LABELS, "No proxy of shop/front is ready. Clients cannot connect to its address.")},
    ),
    "one of two proxies is not ready": Case(
        _proxy("1+0x60", "0+0x60"), 40, {"MemcachedProxyNotUpToDate": (LABELS, _NOT_UP_TO_DATE)}
    ),
    "proxies do not get the slots of their cache, and the leader has changed": Case(
        {**_proxy("2+0x20 stale", "0+0x20 stale"), **_proxy("_x21 2+0x60", "_x21 0+0x60", STANDBY)},
        50,
        {"MemcachedProxyNotUpToDate": (LABELS, _NOT_UP_TO_DATE)},
    ),
    "a proxy cannot reach a server": Case(
        _unreachable("0+0x10 1+0x50"),
        30,
        {
            "MemcachedProxyServersUnreachable": (
                LABELS,
                "Servers that a proxy of shop/front cannot reach: 1. Requests for their keys fail.",
            )
        },
    ),
    "a phase of a change of size waits for a proxy": Case(
        _waits("_x5 300+0x55"),
        25,
        {
            "MemcachedMoveStuck": (
                CACHE,
                "The change of size of shop/sessions has waited in a phase for 20m 0s. Its status says what it waits "
                "for.",
            )
        },
    ),
    "a slot does not confirm writes of keys that move": Case(
        {**_refused("0+0x10 0+60x50"), **_refused("0+0x60", FRONT.replace("front-0", "front-1"))},
        30,
        {
            "MemcachedProxyWritesRefused": (
                LABELS,
                "Proxies of shop/front answer writes of keys that move with an error, because a slot does not confirm"
                " them.",
            )
        },
    ),
}
SILENT: Final[Mapping[str, Case]] = {
    "healthy proxies": Case({**_proxy("2+0x60", "1+0x60"), **_unreachable("0+0x60")}, 60),
    "proxies are replaced": Case(_proxy("2+0x60", "1+0x10 0+0x20 1+0x30"), 32),
    "a proxy is restarted": Case(_proxy("1+0x10 0+0x3 1+0x50", "1+0x10 0+0x3 1+0x50"), 14),
    "a server is restarted": Case(_unreachable("0+0x10 1+0x3 0+0x50"), 14),
    "each phase of a change of size waits for a while": Case(
        _waits("0+0x13 840+0x13 stale _x10 2340+0x14"), 52, steady=52
    ),
    "a slot is restarted while its keys move": Case(_refused("0+0x10 40+0x50"), 60, steady=60),
    "a container of a cache reports a change of size": Case(_waits("0+0x60", POD), 40),
    "a container of a cache reports a proxy of the controller": Case(
        {f'memcached_operator_proxy_ready_pods{{proxy_namespace="shop",proxy="front",{POD}}}': "0+0x60"}, 40
    ),
}
