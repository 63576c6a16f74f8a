"""`find`: the pods that hold a key. It neither changes the order of eviction nor the hit ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Secrets, load
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import for_each, session
from kubectl_memcached.commands.options import cluster_command, name_argument, output_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import units
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.replies import Item, check_key, parse_item
from kubectl_memcached.progress import progress

COLUMNS = ("POD", "SIZE", "EXPIRES IN", "LAST ACCESS", "READ", "CLASS", "PROBLEM")


@dataclass(frozen=True)
class Found:
    """What a pod has of a key. `item`: None if it has none, or if it did not reply, which `problem` says."""

    pod: str
    item: Item | None
    problem: str = ""


@click.command()
@name_argument
@click.argument("key")
@output_option
@cluster_command
def find(kubectl: Kubectl, name: str, key: str, output: str) -> None:
    """Show the pods that hold KEY: size in memory, expiration, last access.

    Exits with 0 if a pod has it, with 1 if none has, with 6 if none of those that replied has.
    """
    check_key(key)
    cache = load(kubectl, name)
    secrets = Secrets(kubectl)
    with progress("Asking pods", len(cache.pods)) as shown:
        found = for_each(cache.pods, partial(_ask, kubectl, secrets, key), shown.step)
    (_as_json if output == "json" else _as_table)(key, found)
    raise SystemExit(_code(found))


def _ask(kubectl: Kubectl, secrets: Secrets, key: str, pod: Pod) -> Found:
    """Ask a pod with `me`, which neither counts as a get nor as an access."""
    try:
        with session(kubectl, pod, secrets) as opened, opened.memcached() as memcached:
            return Found(pod.name, parse_item(memcached.line(f"me {key}")))
    except PluginError as error:
        return Found(pod.name, None, str(error))
    except ValueError as error:
        return Found(pod.name, None, f"memcached replied {str(error)!r} to `me`: it is older than 1.6")


def _code(found: Sequence[Found]) -> ExitCode:
    if any(each.item for each in found):
        return ExitCode.OK
    return ExitCode.POD if any(each.problem for each in found) else ExitCode.NEGATIVE


def _as_json(key: str, found: Sequence[Found]) -> None:
    output.print_json({"key": key, "pods": [_document(each) for each in found]})


def _document(found: Found) -> dict[str, Any]:
    item = found.item
    described = item and {
        "sizeBytes": item.size,
        "expiresInSeconds": item.ttl,
        "lastAccessSeconds": item.idle,
        "read": item.fetched,
        "slabClass": item.slab,
    }
    return {"pod": found.pod, "item": described, "problem": found.problem}


def _as_table(key: str, found: Sequence[Found]) -> None:
    console = output.console()
    shown = [each for each in found if each.item or each.problem]
    holders = [each for each in found if each.item]
    if shown:
        names, lines = output.without_empty(COLUMNS, [_cells(each) for each in shown], kept=1)
        table = output.table(*names, right=COLUMNS[1:6], folded=["POD", "PROBLEM"])
        for line in lines:
            table.add_row(*line)
        console.print(table)
    if not holders:
        console.print(f"No pod that replied has the key {key}.")
    if len(holders) > 1:
        console.print(
            f"{len(holders)} pods have the key: clients use different lists of servers, or used another one before "
            "(docs/clients.md)."
        )


def _cells(found: Found) -> list[Any]:
    item = found.item
    if item is None:
        return [found.pod, *[units.UNKNOWN] * 5, found.problem]
    expires = "never" if item.ttl is None else units.duration(item.ttl)
    idle = f"{units.duration(item.idle)} ago"
    return [found.pod, units.size(item.size), expires, idle, "yes" if item.fetched else "no", str(item.slab), ""]
