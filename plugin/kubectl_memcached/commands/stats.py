"""`stats`: the counters of memcached, by pod."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import click
from rich.console import Console, RenderableType

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Secrets, load, selected
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import for_each, recovered, session
from kubectl_memcached.commands.options import cluster_command, name_argument, output_option, pods_option
from kubectl_memcached.errors import ExitCode
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics.replies import HITS, Stats, by_class, parse_stats, summed
from kubectl_memcached.progress import progress

SLABS: Final = {
    "chunk_size": "CHUNK",
    "total_pages": "PAGES",
    "used_chunks": "USED",
    "free_chunks": "FREE",
    "cmd_set": "SETS",
    "get_hits": "HITS",
}
ITEMS: Final = {
    "number": "ITEMS",
    "age": "AGE",
    "evicted": "EVICTED",
    "evicted_time": "IDLE",
    "outofmemory": "OOM",
    "reclaimed": "EXPIRED",
}
"""Values of `stats slabs` and `stats items` in the tables, and their columns. JSON has all values."""


@dataclass(frozen=True)
class Reply:
    """The values of a pod. `problem`: the reason if there are none, otherwise empty."""

    pod: str
    stats: Stats
    problem: str = ""


@click.command()
@name_argument
@click.option("--slabs", "kind", flag_value="slabs", help="Memory by slab class.")
@click.option("--items", "kind", flag_value="items", help="Items, evictions and ages by slab class.")
@click.option("--settings", "kind", flag_value="settings", help="Settings with which memcached runs.")
@pods_option
@output_option
@cluster_command
def stats(kubectl: Kubectl, name: str, kind: str | None, pods: tuple[str, ...], output: str) -> None:
    """Show the counters of memcached, by pod."""
    chosen = selected(load(kubectl, name), pods)
    command = "stats" if kind is None else f"stats {kind}"
    read = recovered(partial(_read, kubectl, Secrets(kubectl), command), lambda pod, text: Reply(pod.name, {}, text))
    with progress("Reading pods", len(chosen)) as shown:
        replies = for_each(chosen, read, shown.step)
    (_as_json if output == "json" else _as_tables)(kind, replies)
    if any(reply.problem for reply in replies):
        raise SystemExit(ExitCode.POD)


def _read(kubectl: Kubectl, secrets: Secrets, command: str, pod: Pod) -> Reply:
    with session(kubectl, pod, secrets) as opened, opened.memcached() as memcached:
        return Reply(pod.name, parse_stats(memcached.lines(command)))


def _as_json(kind: str | None, replies: Sequence[Reply]) -> None:
    documents: list[dict[str, Any]] = []
    for reply in replies:
        values: dict[str, Any] = dict(reply.stats)
        if kind in ("slabs", "items"):
            values = {"classes": {str(slab): values for slab, values in by_class(reply.stats).items()}}
        documents.append({"pod": reply.pod, "stats": values, "problem": reply.problem})
    output.print_json({"pods": documents})


def _as_tables(kind: str | None, replies: Sequence[Reply]) -> None:
    console = output.console()
    for reply in replies:
        if reply.problem:
            output.show(console, f"{reply.pod}: {reply.problem}")
    read = [reply for reply in replies if not reply.problem]
    if kind in ("slabs", "items"):
        for number, reply in enumerate(read):
            output.show(console, output.styled("\n" * (number > 0) + reply.pod, output.TITLE))
            output.show(console, *_by_class(reply.stats, SLABS if kind == "slabs" else ITEMS, console.width))
        return
    for number, group in enumerate(_groups(console, read)):
        if number:
            output.show(console)
        _side_by_side(console, group)


def _by_class(values: Stats, columns: dict[str, str], width: int) -> list[RenderableType]:
    names = ["CLASS", *columns.values()]
    rows = [[str(slab), *(_shown(counters, name) for name in columns)] for slab, counters in by_class(values).items()]
    return output.tables(names, rows, width, right=names)


def _shown(counters: Stats, name: str) -> str:
    """A value in a table. Hits include those that set the time to live."""
    hits = summed(counters, *HITS) if name in HITS else None
    return counters.get(name, "-") if hits is None else f"{hits:.0f}"


def _groups(console: Console, replies: Sequence[Reply]) -> Iterator[list[Reply]]:
    """The pods that fit side by side, each with a column as wide as its longest value."""
    name_width = max((len(name) for reply in replies for name in reply.stats), default=0)
    group, used = list[Reply](), name_width
    for reply in replies:
        width = 2 + max(len(reply.pod), *(len(value) for value in reply.stats.values()), 0)
        if group and used + width > console.width:
            yield group
            group, used = [], name_width
        group.append(reply)
        used += width
    if group:
        yield group


def _side_by_side(console: Console, group: Sequence[Reply]) -> None:
    table = output.table("STAT", *(reply.pod for reply in group), right=[reply.pod for reply in group])
    names = list(dict.fromkeys(name for reply in group for name in reply.stats))
    for name in names:
        table.add_row(name, *(reply.stats.get(name, "-") for reply in group))
    output.show(console, table)
