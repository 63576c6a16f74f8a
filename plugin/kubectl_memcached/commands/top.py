"""`top`: requests per second of each pod, live."""

import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Secrets, load, selected
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import FOR_ALL, session
from kubectl_memcached.commands.options import cluster_command, name_argument, output_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.memcached.connection import Connection, MemcachedError
from kubectl_memcached.model import units
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics import rates
from kubectl_memcached.model.statistics.replies import Stats
from kubectl_memcached.progress import progress

INTERVAL: Final = 2.0
"""Seconds between two samples."""
MAX_PODS: Final = 32
"""Pods that are watched at the same time: each keeps a process of kubectl."""
COLUMNS: Final = ("POD", "GETS/s", "HITS", "SETS/s", "EVICT/s", "IN/s", "OUT/s", "CONNS", "MEM", "ITEMS")
DISK: Final = "DISK"
"""The last column, with items on disks."""


class Watched:
    """The connection to a pod, which is opened again after an error, and its last sample."""

    def __init__(self, kubectl: Kubectl, pod: Pod, secrets: Secrets) -> None:
        self.pod = pod
        self._kubectl = kubectl
        self._secrets = secrets
        self._stack = ExitStack()
        self._connection: Connection | None = None
        self._before: tuple[float, Stats] | None = None

    def sample(self) -> rates.Rates:
        """Read the counters, and return the rates since the last sample. Raises PluginError if no pod can be read."""
        try:
            now, stats = self._read()
        except PluginError as error:
            if error.code in FOR_ALL:
                raise
            self.close()
            return rates.Rates(self.pod.name, problem=str(error))
        before, self._before = self._before or (now, stats), (now, stats)
        return rates.rates(self.pod.name, before[1], stats, now - before[0])

    def close(self) -> None:
        """Close the connection, and forget the last sample."""
        self._stack.close()
        self._connection = self._before = None

    def _read(self) -> tuple[float, Stats]:
        try:
            if self._connection is None:
                opened = self._stack.enter_context(session(self._kubectl, self.pod, self._secrets))
                self._connection = self._stack.enter_context(opened.memcached())
            return time.monotonic(), self._connection.statistics()
        except MemcachedError as error:
            raise PluginError(f"memcached of {self.pod.name} {error}", ExitCode.POD) from None


@click.command()
@name_argument
@click.option("--interval", type=click.FloatRange(0.5, 3600), default=INTERVAL, show_default=True, help="Seconds.")
@click.option("--once", is_flag=True, help="Print one interval and exit.")
@output_option
@cluster_command
def top(kubectl: Kubectl, name: str, interval: float, once: bool, output: str) -> None:
    """Show the requests per second of each pod until Ctrl-C.

    Without a terminal, and with -o json, it prints one interval.
    """
    pods = selected(load(kubectl, name))
    if len(pods) > MAX_PODS:
        raise PluginError(f"Memcached {name} has {len(pods)} pods. top shows at most {MAX_PODS}.", ExitCode.USAGE)
    with _watched(kubectl, pods) as watched:
        _run(watched, interval, once, output)


def _run(pods: Sequence[Watched], interval: float, once: bool, form: str) -> None:
    console = output.console()
    if once or form == "json" or not console.is_terminal:
        _once(console, pods, interval, form)
        return
    _sample(pods)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            time.sleep(interval)
            live.update(Group(*_content(_sample(pods), console.width)), refresh=True)


def _once(console: Console, pods: Sequence[Watched], interval: float, form: str) -> None:
    with progress("Measuring"):
        _sample(pods)
        time.sleep(interval)
        all_rates = _sample(pods)
    if form == "json":
        documents = [rates.document(pod_rates) for pod_rates in all_rates]
        output.print_json(
            {"intervalSeconds": interval, "pods": documents, "total": rates.document(rates.total(all_rates))}
        )
    else:
        output.show(console, *_content(all_rates, console.width))
    if any(pod_rates.problem for pod_rates in all_rates):
        raise SystemExit(ExitCode.POD)


@contextmanager
def _watched(kubectl: Kubectl, pods: Sequence[Pod]) -> Generator[list[Watched]]:
    secrets = Secrets(kubectl)
    watched = [Watched(kubectl, pod, secrets) for pod in pods]
    try:
        yield watched
    finally:
        for pod in watched:
            pod.close()


def _sample(pods: Sequence[Watched]) -> list[rates.Rates]:
    with ThreadPoolExecutor(len(pods)) as executor:
        return list(executor.map(Watched.sample, pods))


def _content(all_rates: Sequence[rates.Rates], width: int) -> list[RenderableType]:
    """The table, and a sentence about each pod that cannot be read."""
    shown = [*all_rates, rates.total(all_rates)] if len(all_rates) > 1 else all_rates
    styles = [output.BAD if each.problem else output.TITLE if each.pod == rates.TOTAL else None for each in shown]
    rows = [_cells(each) for each in shown]
    columns = COLUMNS
    if any(each.disk_share is not None for each in shown):
        columns = (*COLUMNS, DISK)
        rows = [[*cells, units.percent(each.disk_share)] for cells, each in zip(rows, shown, strict=True)]
    problems = [output.plain(f"{each.pod}: {each.problem}") for each in all_rates if each.problem]
    return [*output.tables(columns, rows, width, right=columns[1:], gap=1, styles=styles), *problems]


def _cells(values: rates.Rates) -> list[str]:
    return [
        values.pod,
        units.count(values.gets),
        units.percent(values.hit_ratio),
        units.count(values.sets),
        units.count(values.evictions),
        units.size(values.read),
        units.size(values.written),
        units.count(values.connections),
        units.percent(values.memory_share),
        units.count(values.items),
    ]
