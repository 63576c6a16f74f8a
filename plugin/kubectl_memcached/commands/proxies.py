"""MemcachedProxies in `status`."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.text import Text

from kubectl_memcached import output
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.commands import described
from kubectl_memcached.errors import PluginError
from kubectl_memcached.model import conditions, proxies
from kubectl_memcached.model.objects import RESOURCE, Object, full_name, text
from kubectl_memcached.model.shell import Shell

COLUMNS: Final = ("PROXY", "CACHE", "READY", "PODS", "SLOTS", "ADDRESS", "PROBLEM")
NUMBERS: Final = ("PODS", "SLOTS")


def documents(crs: Sequence[Object], options: Sequence[str]) -> dict[str, Any]:
    """MemcachedProxies as a part of a document; nothing without any. `options`: those of the user's kubectl."""
    found = [
        proxies.document(cr, Shell(text(cr, "metadata", "namespace"), tuple(options))) for cr in proxies.ordered(crs)
    ]
    return {"proxies": found} if found else {}


def show(kubectl: Kubectl, cr: Object, *, as_json: bool) -> None:
    """Print a MemcachedProxy with its conditions and remedies."""
    shell = Shell(text(cr, "metadata", "namespace"), tuple(kubectl.cluster_options))
    if as_json:
        output.print_json(proxies.document(cr, shell))
        return
    console, ready = output.console(), conditions.is_ready(cr)
    state = ("ready", output.GOOD) if ready else ("not ready", output.BAD)
    output.show(console, Text.assemble(("MemcachedProxy ", ""), (full_name(cr), output.TITLE), " is ", state))
    output.show(console, "", *_tables(console, [cr], _cache(kubectl, cr)))
    described.table(console, cr, time.time())
    described.messages(console, cr, proxies.remedies(cr, shell))
    if sentence := conditions.unobserved(cr):
        output.show(console, "", sentence)


def show_beside(console: Console, crs: Sequence[Object], cache: Object, shell: Shell) -> None:
    """Print the MemcachedProxies of a cache, and the remedies for those that are not healthy."""
    found = proxies.ordered(crs)
    output.show(console, "", *_tables(console, found, {full_name(cache): cache}))
    for cr in found:
        described.messages(console, cr, proxies.remedies(cr, shell), text(cr, "metadata", "name"))


def show_all(console: Console, crs: Sequence[Object], caches: Mapping[str, Object]) -> None:
    """Print the MemcachedProxies of all namespaces. `caches`: the Memcacheds by their full names."""
    found = proxies.ordered(crs)
    ready = sum(conditions.is_ready(cr) for cr in found)
    output.show(console, "", *_tables(console, found, caches, of_all=True))
    output.show(console, "", f"{ready} of {len(found)} MemcachedProxies are ready.")


def _cache(kubectl: Kubectl, cr: Object) -> dict[str, Object]:
    """The Memcached of the spec by its full name; empty if it cannot be read."""
    try:
        found = kubectl.get("read the Memcached", RESOURCE, proxies.cache_of(cr))
    except PluginError:
        return {}
    return {full_name(found): found}


def _tables(
    console: Console, crs: Sequence[Object], caches: Mapping[str, Object], *, of_all: bool = False
) -> list[RenderableType]:
    """One row for each MemcachedProxy. `of_all`: with its namespace and its problem."""
    rows = [_cells(cr, caches.get(_cache_name(cr)), of_all=of_all) for cr in crs]
    names, lines = output.without_empty(COLUMNS, rows, kept=len(COLUMNS) - 1)
    return output.tables(names, lines, console.width, right=NUMBERS, folded=["PROBLEM"])


def _cache_name(cr: Object) -> str:
    return f"{text(cr, 'metadata', 'namespace')}/{proxies.cache_of(cr)}"


def _cells(cr: Object, cache: Object | None, *, of_all: bool) -> list[str | Text]:
    ready = conditions.is_ready(cr)
    return [
        full_name(cr) if of_all else text(cr, "metadata", "name"),
        proxies.cache_of(cr) or "-",
        output.styled("yes" if ready else "no", output.GOOD if ready else output.BAD),
        proxies.pods(cr),
        proxies.slots(cr, cache),
        text(cr, "status", "address") or "-",
        (proxies.problem(cr) or "-") if of_all else "-",
    ]
