"""`stats`: the counters of memcached, by pod."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import click
from rich.console import Console

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Secrets, load
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import for_each, session
from kubectl_memcached.commands.options import cluster_command, name_argument, output_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.replies import Stats, by_class, parse_stats
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
class Replies:
    """The values of a pod. `problem`: why there are none; empty if there are."""

    pod: str
    stats: Stats
    problem: str = ""


@click.command()
@name_argument
@click.option("--slabs", "kind", flag_value="slabs", help="Memory by slab class.")
@click.option("--items", "kind", flag_value="items", help="Items, evictions and ages by slab class.")
@click.option("--settings", "kind", flag_value="settings", help="Settings with which memcached runs.")
@click.option("--pod", "pods", multiple=True, metavar="POD", help="Only this pod; can be repeated.")
@output_option
@cluster_command
def stats(kubectl: Kubectl, name: str, kind: str | None, pods: tuple[str, ...], output: str) -> None:
    """Show the counters of memcached, by pod."""
    cache = load(kubectl, name)
    chosen = _chosen(cache.pods, pods)
    secrets = Secrets(kubectl)
    command = "stats" if kind is None else f"stats {kind}"
    with progress("Reading pods", len(chosen)) as shown:
        found = for_each(chosen, partial(_read, kubectl, secrets, command), shown.step)
    (_as_json if output == "json" else _as_tables)(kind, found)
    if any(each.problem for each in found):
        raise SystemExit(ExitCode.POD)


def _chosen(pods: Sequence[Pod], names: Sequence[str]) -> list[Pod]:
    """The pods with these names; without names, all. Raises PluginError for another name."""
    known = {pod.name: pod for pod in pods}
    if other := [name for name in names if name not in known]:
        raise PluginError(f"There is no pod {other[0]}: the pods are {', '.join(known) or 'none'}.", ExitCode.MISSING)
    return [known[name] for name in names] or list(pods)


def _read(kubectl: Kubectl, secrets: Secrets, command: str, pod: Pod) -> Replies:
    try:
        with session(kubectl, pod, secrets) as opened, opened.memcached() as memcached:
            return Replies(pod.name, parse_stats(memcached.lines(command)))
    except PluginError as error:
        return Replies(pod.name, {}, str(error))


def _as_json(kind: str | None, found: Sequence[Replies]) -> None:
    documents: list[dict[str, Any]] = []
    for each in found:
        values: dict[str, Any] = dict(each.stats)
        if kind in ("slabs", "items"):
            values = {"classes": {str(slab): values for slab, values in by_class(each.stats).items()}}
        documents.append({"pod": each.pod, "stats": values, "problem": each.problem})
    output.print_json({"pods": documents})


def _as_tables(kind: str | None, found: Sequence[Replies]) -> None:
    console = output.console()
    for each in found:
        if each.problem:
            console.print(f"{each.pod}: {each.problem}")
    read = [each for each in found if not each.problem]
    if kind in ("slabs", "items"):
        for number, each in enumerate(read):
            console.print("\n" * (number > 0) + each.pod, style=output.TITLE)
            console.print(_by_class(each.stats, SLABS if kind == "slabs" else ITEMS))
        return
    for number, group in enumerate(_groups(console, read)):
        if number:
            console.print()
        _side_by_side(console, group)


def _by_class(values: Stats, columns: dict[str, str]) -> Any:
    table = output.table("CLASS", *columns.values(), right=["CLASS", *columns.values()])
    for slab, found in by_class(values).items():
        table.add_row(str(slab), *(found.get(name, "-") for name in columns))
    return table


def _groups(console: Console, found: Sequence[Replies]) -> Iterator[list[Replies]]:
    """The pods that fit side by side, each with a column as wide as its longest value."""
    name_width = max((len(name) for each in found for name in each.stats), default=0)
    group, used = list[Replies](), name_width
    for each in found:
        width = 2 + max(len(each.pod), *(len(value) for value in each.stats.values()), 0)
        if group and used + width > console.width:
            yield group
            group, used = [], name_width
        group.append(each)
        used += width
    if group:
        yield group


def _side_by_side(console: Console, group: Sequence[Replies]) -> None:
    table = output.table("STAT", *(each.pod for each in group), right=[each.pod for each in group])
    names = list(dict.fromkeys(name for each in group for name in each.stats))
    for name in names:
        table.add_row(name, *(each.stats.get(name, "-") for each in group))
    console.print(table)
