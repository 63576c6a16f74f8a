"""`hotkeys`: the keys with most requests."""

from collections.abc import Sequence
from typing import Any, Final

import click

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import load
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.watching import Log, Watch, watchable
from kubectl_memcached.commands.options import (
    cluster_command,
    name_argument,
    output_option,
    pods_option,
    seconds_option,
)
from kubectl_memcached.errors import ExitCode
from kubectl_memcached.model import units, watching
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics import hot
from kubectl_memcached.model.statistics.hot import HotKey, PodTraffic, SpaceSaving
from kubectl_memcached.progress import progress

TOP: Final = 20
"""Keys of the cache, and of each pod with -o json."""
KEYS: Final = ("REQ/s", "SHARE", "OF POD", "SIZE", "POD", "KEY")
PODS: Final = ("POD", "REQ/s", "SHARE", "HOTTEST", "LOST", "PROBLEM")
MANY: Final = 0.01
"""The share of lost lines above which a sentence says so."""
MAX_SHARES: Final = 2
"""Pods of a key that are listed in its row."""


@click.command()
@name_argument
@seconds_option
@pods_option
@output_option
@cluster_command
def hotkeys(kubectl: Kubectl, name: str, seconds: float, pods: tuple[str, ...], output: str) -> None:
    """Show the 20 keys with most requests, with their shares and sizes.

    It shows keys. memcached logs each look-up of a key with its command `watch`, by gets, sets and all other commands,
    and drops lines under load: LOST is their number.

    Exits with 0, with 1 without requests, with 6 if pods did not reply, with 7 if --disable-watch blocks it.
    """
    cache = load(kubectl, name)
    chosen = watchable(cache, pods)
    with progress(f"Watching for {seconds:g} s", len(chosen)) as shown:
        watch = Watch(kubectl, "fetchers", seconds)
        traffic = watch.each(chosen, _count, lambda pod, text: PodTraffic(pod.name, problem=text), shown.step)
    (_as_json if output == "json" else _as_tables)(traffic, seconds)
    raise SystemExit(_code(traffic))


def _count(pod: Pod, log: Log) -> PodTraffic:
    counts = SpaceSaving()

    def consume(lines: bytes) -> None:
        for key, size in watching.requested(lines):
            counts.add(key, size)

    watched = log.read(consume)
    return PodTraffic(pod.name, counts.total, watched.seconds, watched.lost, tuple(counts.top(TOP)))


def _code(traffic: Sequence[PodTraffic]) -> ExitCode:
    if any(pod.problem for pod in traffic):
        return ExitCode.POD
    return ExitCode.OK if any(pod.requests for pod in traffic) else ExitCode.NEGATIVE


def _as_json(traffic: Sequence[PodTraffic], seconds: float) -> None:
    output.print_json(
        {
            "seconds": seconds,
            "requestsPerSecond": round(sum(pod.rate for pod in traffic), 1),
            "keys": [hot.document(key) for key in hot.hottest(traffic, TOP)],
            "pods": [_pod(pod) for pod in traffic],
        }
    )


def _pod(pod: PodTraffic) -> dict[str, Any]:
    return {
        "pod": pod.pod,
        "requestsPerSecond": round(pod.rate, 1),
        "lostLines": pod.lost,
        "keys": [hot.document(key) for key in hot.hottest([pod], TOP)],
        "problem": pod.problem,
    }


def _as_tables(traffic: Sequence[PodTraffic], seconds: float) -> None:
    console = output.console()
    total = sum(pod.rate for pod in traffic)
    keys = hot.hottest(traffic, TOP)
    if keys:
        table = output.table(*KEYS, right=KEYS[:4], folded=["KEY"], gap=1)
        for key in keys:
            table.add_row(*_key_cells(key))
        output.show(console, table, "")
    elif not any(pod.problem for pod in traffic):
        what = "No key stands out" if total else "No requests"
        output.show(console, f"{what} in {seconds:g} s.\n")
    if (lost := hot.lost_share(traffic)) > MANY:
        share = units.percent(lost)
        text = f"memcached dropped {share} of its lines. The rates are higher, the shares are estimates.\n"
        output.show(console, text)
    names, lines = output.without_empty(PODS, [_pod_cells(pod, total) for pod in traffic], kept=5)
    output.show(console, *output.tables(names, lines, console.width, right=PODS[1:5], folded=["PROBLEM"]))


def _key_cells(key: HotKey) -> list[str]:
    shares = "/".join(units.percent(share) for share in key.pods.values())
    return [
        units.count(key.rate),
        units.percent(key.share),
        shares if len(key.pods) <= MAX_SHARES else units.UNKNOWN,
        units.size(key.size or None),
        ", ".join(key.pods) if len(key.pods) <= MAX_SHARES else f"{len(key.pods)} pods",
        watching.readable(key.key),
    ]


def _pod_cells(pod: PodTraffic, total: float) -> list[str]:
    hottest = pod.keys[0].requests / pod.requests if pod.keys else None
    return [
        pod.pod,
        units.count(pod.rate),
        units.percent(pod.rate / total if total else None),
        units.percent(hottest),
        units.count(pod.lost),
        pod.problem,
    ]
