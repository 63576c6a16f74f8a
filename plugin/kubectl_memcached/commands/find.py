"""`find`: the pods that hold a key. It neither changes the order of eviction nor the hit ratio."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import click

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Secrets, get_with_proxies, selected, with_pods
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import for_each, recovered, session
from kubectl_memcached.commands import routes
from kubectl_memcached.commands.options import cache_or_proxy_argument, cluster_command, output_option
from kubectl_memcached.commands.routes import Routed
from kubectl_memcached.errors import ExitCode
from kubectl_memcached.model import units
from kubectl_memcached.model.objects import is_proxy
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics.replies import Item, check_key, parse_item
from kubectl_memcached.progress import progress

COLUMNS = ("POD", "SIZE", "EXPIRES IN", "LAST ACCESS", "READ", "CLASS", "PROBLEM")
SEVERAL: Final = "clients use different lists of servers, or used a different list before (docs/clients.md)."
SEVERAL_MOVING: Final = "a write of it has not ended, or has failed. Its client must repeat it."


@dataclass(frozen=True)
class Lookup:
    """The result of a search in one pod. `item`: None without the key, and if `problem` is not empty."""

    pod: str
    item: Item | None
    problem: str = ""


@click.command()
@cache_or_proxy_argument
@click.argument("key")
@click.option(
    "--base64",
    "in_base64",
    is_flag=True,
    help="Clients send KEY in base64 to the proxies: flag b of mg and ms.",
)
@output_option
@cluster_command
def find(kubectl: Kubectl, name: str, key: str, in_base64: bool, output: str) -> None:
    """Show the pods that hold KEY: size in memory, expiration, last access.

    For the name of a MemcachedProxy, it shows the slot to which the proxies send KEY, and asks only the pod of this
    slot. If a Memcached has the same name, use memcachedproxy/NAME. A key in base64 has another slot than the same key
    as text, but servers store both under the same name.

    Exits with 0 if a pod has it, with 1 if no pod has it, with 6 if pods did not reply and the others do not have it.
    """
    check_key(key)
    cr = get_with_proxies(kubectl, name)
    routed = routes.of_key(kubectl, cr, key, base64=in_base64) if is_proxy(cr) else None
    pods = routed.pods if routed else selected(with_pods(kubectl, cr))
    ask = recovered(partial(_ask, kubectl, Secrets(kubectl), key), lambda pod, text: Lookup(pod.name, None, text))
    with progress("Asking pods", len(pods)) as shown:
        lookups = for_each(pods, ask, shown.step)
    lookups += [Lookup(pod, None, routes.MISSING) for pod in (routed.missing if routed else ())]
    (_as_json if output == "json" else _as_table)(key, lookups, routed)
    raise SystemExit(_code(lookups))


def _ask(kubectl: Kubectl, secrets: Secrets, key: str, pod: Pod) -> Lookup:
    """Ask a pod with `me`, which neither counts as a get nor as an access. Raises PluginError."""
    try:
        with session(kubectl, pod, secrets) as opened, opened.memcached() as memcached:
            return Lookup(pod.name, parse_item(memcached.line(f"me {key}")))
    except ValueError as error:
        return Lookup(pod.name, None, f"memcached replied {str(error)!r} to `me`: it is older than 1.6")


def _code(lookups: Sequence[Lookup]) -> ExitCode:
    if any(lookup.item for lookup in lookups):
        return ExitCode.OK
    return ExitCode.POD if any(lookup.problem for lookup in lookups) else ExitCode.NEGATIVE


def _as_json(key: str, lookups: Sequence[Lookup], routed: Routed | None) -> None:
    routing = routed.document() if routed else {}
    output.print_json({"key": key, **routing, "pods": [_document(lookup) for lookup in lookups]})


def _document(lookup: Lookup) -> dict[str, Any]:
    item = lookup.item
    described = item and {
        "sizeBytes": item.size,
        "expiresInSeconds": item.ttl,
        "lastAccessSeconds": item.idle,
        "read": item.fetched,
        "slabClass": item.slab,
    }
    return {"pod": lookup.pod, "item": described, "problem": lookup.problem}


def _as_table(key: str, lookups: Sequence[Lookup], routed: Routed | None) -> None:
    console = output.console()
    if routed:
        output.show(console, *routed.sentences(), "")
    shown = [lookup for lookup in lookups if lookup.item or lookup.problem]
    holders = [lookup for lookup in lookups if lookup.item]
    if shown:
        names, lines = output.without_empty(COLUMNS, [_cells(lookup) for lookup in shown], kept=1)
        output.show(console, *output.tables(names, lines, console.width, right=COLUMNS[1:6], folded=["PROBLEM"]))
    if not holders and all(lookup.problem for lookup in lookups):
        output.show(console, "No pod replied.")
    elif not holders:
        output.show(console, f"No pod that replied has the key {key}.")
    if routed and not holders:
        output.show(console, routed.hint)
    if len(holders) > 1:
        cause = SEVERAL_MOVING if routed and routed.is_moving else SEVERAL
        output.show(console, f"{len(holders)} pods have the key: {cause}")


def _cells(lookup: Lookup) -> list[Any]:
    item = lookup.item
    if item is None:
        return [lookup.pod, *[units.UNKNOWN] * 5, lookup.problem]
    expires = "never" if item.ttl is None else units.duration(item.ttl)
    idle = f"{units.duration(item.idle)} ago"
    return [lookup.pod, units.size(item.size), expires, idle, "yes" if item.fetched else "no", str(item.slab), ""]
