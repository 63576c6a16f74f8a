"""`status -A`: one row for each cache of the cluster, and for each MemcachedProxy."""

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from kubectl_memcached import output
from kubectl_memcached.cluster import proxies as cluster_proxies
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.commands import proxies
from kubectl_memcached.model import conditions, upgrading
from kubectl_memcached.model.objects import RESOURCE, Object, full_name, integer, ready_pods, text

COLUMNS: Final = ("CACHE", "READY", "PODS", "MEMORY", "IMAGE", "PROBLEM")
HEALTHY_COLUMNS: Final = 5
OUTDATED: Final = "known problems of its image: run `{}`"


def show(kubectl: Kubectl, selector: str, *, as_json: bool) -> bool:
    """Show the caches and proxies of all namespaces; returns whether all are ready.

    Raises PluginError if the caches cannot be read.
    """
    options = ["--all-namespaces", *([f"--selector={selector}"] if selector else [])]
    listed = kubectl.list("list Memcacheds", RESOURCE, *options)
    others, hidden = cluster_proxies.listed(kubectl, *options)
    crs = sorted(listed, key=lambda cr: (conditions.is_ready(cr), full_name(cr)))
    if as_json:
        found = [_document(cr, kubectl.cluster_options) for cr in crs]
        problem = {"proxiesProblem": hidden} if hidden else {}
        output.print_json({"caches": found, **proxies.documents(others, kubectl.cluster_options), **problem})
    else:
        console = output.console()
        rows = [_cells(cr, kubectl.cluster_options) for cr in crs]
        names, lines = output.without_empty(COLUMNS, rows, kept=HEALTHY_COLUMNS)
        output.show(console, *output.tables(names, lines, console.width, right=["PODS", "MEMORY"], folded=["PROBLEM"]))
        outdated = sum(bool(upgrading.corrected_in(cr)) for cr in crs)
        ready = sum(conditions.is_ready(cr) for cr in crs)
        have = "has" if outdated == 1 else "have"
        unknown = sum(not text(cr, "spec", "image") for cr in crs)
        unnamed = f", {unknown} {'has' if unknown == 1 else 'have'} none in the spec" if unknown else ""
        counts = f"{ready} of {len(crs)} caches are ready, {outdated} {have} an image with known problems{unnamed}."
        output.show(console, "", counts)
        if others:
            proxies.show_all(console, others, {full_name(cr): cr for cr in crs})
        if hidden:
            output.show(console, "", hidden)
    return all(conditions.is_ready(cr) for cr in (*crs, *others))


def _problem(cr: Object, options: Sequence[str]) -> str:
    """The first of: no status, the message of a condition that is not healthy, known problems of the image.

    `options`: those with which the user's kubectl reaches the cluster.
    """
    found = {each.type: each for each in conditions.conditions(cr)}
    unhealthy = [found[kind] for kind in ("Degraded", "Available", "Progressing") if kind in found]
    messages = [each.message for each in unhealthy if not each.healthy]
    command = upgrading.remedy(cr, options)
    return conditions.unobserved(cr) or next(iter(messages), "") or (OUTDATED.format(command) if command else "")


def _cells(cr: Object, options: Sequence[str]) -> list[str | Text]:
    ready = conditions.is_ready(cr)
    there, size = ready_pods(cr, integer(cr, "spec", "size"))
    return [
        full_name(cr),
        output.styled("yes" if ready else "no", output.GOOD if ready else output.BAD),
        f"{there}/{size}",
        text(cr, "status", "cache", "memory") or "-",
        text(cr, "spec", "image") or "-",
        _problem(cr, options) or "-",
    ]


def _document(cr: Object, options: Sequence[str]) -> dict[str, Any]:
    return {
        "namespace": text(cr, "metadata", "namespace"),
        "name": text(cr, "metadata", "name"),
        "ready": conditions.is_ready(cr),
        "size": integer(cr, "spec", "size"),
        "readyReplicas": integer(cr, "status", "readyReplicas"),
        "image": text(cr, "spec", "image"),
        "problem": _problem(cr, options),
        "correctedIn": upgrading.corrected_in(cr),
    }
