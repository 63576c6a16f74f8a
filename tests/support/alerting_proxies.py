"""Series of proxies for which alerts fire or stay silent, as in support.alerting."""

from collections.abc import Mapping
from typing import Final

from support.alerting import MANAGER, POD, STANDBY, Case, Series

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
}
SILENT: Final[Mapping[str, Case]] = {
    "healthy proxies": Case({**_proxy("2+0x60", "1+0x60"), **_unreachable("0+0x60")}, 60),
    "proxies are replaced": Case(_proxy("2+0x60", "1+0x10 0+0x20 1+0x30"), 32),
    "a proxy is restarted": Case(_proxy("1+0x10 0+0x3 1+0x50", "1+0x10 0+0x3 1+0x50"), 14),
    "a server is restarted": Case(_unreachable("0+0x10 1+0x3 0+0x50"), 14),
    "a container of a cache reports a proxy of the controller": Case(
        {f'memcached_operator_proxy_ready_pods{{proxy_namespace="shop",proxy="front",{POD}}}': "0+0x60"}, 40
    ),
}
