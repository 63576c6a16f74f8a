"""`ring`: whether the clients agree on which server a key belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_from_bytes

import click

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Cache, get_with_proxies, with_pods
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.watching import Log, Watch, watchable
from kubectl_memcached.commands import routes
from kubectl_memcached.commands.options import (
    cache_or_proxy_argument,
    cluster_command,
    output_option,
    pods_option,
    seconds_option,
)
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import units, watching
from kubectl_memcached.model.objects import Object, integer, is_proxy, mapping, selector, text
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.progress import progress
from kubectl_memcached.ring import matching, sentences
from kubectl_memcached.ring.matching import Finding
from kubectl_memcached.ring.sampling import Sample, merged
from kubectl_memcached.ring.servers import Form, forms, is_pooled

COLUMNS: Final = ("POD", "NEW KEYS", "MATCH", "LOST", "PROBLEM")
MAX_SHOWN: Final = 20
"""Keys that --show-keys shows."""


@dataclass(frozen=True)
class Stored:
    """The keys that were stored in a pod, of which `sample` has some. `lost`: lines that memcached dropped."""

    pod: str
    sample: Sample = field(default_factory=Sample)
    lost: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class Result:
    """The result of the command. `slots`: names of pods by slot. `counts`: of each pod's keys, and of matching ones."""

    seconds: float
    slots: list[str]
    stored: list[Stored]
    finding: Finding
    counts: Mapping[str, tuple[int, int]]


@click.command()
@cache_or_proxy_argument
@seconds_option
@pods_option
@click.option("--show-keys", is_flag=True, help="Show some of the keys that lie elsewhere.")
@output_option
@cluster_command
def ring(kubectl: Kubectl, name: str, seconds: float, pods: tuple[str, ...], show_keys: bool, output: str) -> None:
    """Show whether the clients agree on the server of each key.

    It compares where new keys are stored with the placements of known client libraries. Only keys that are stored
    while it runs count, and it shows none without --show-keys. memcached logs them with its command `watch`.

    For the name of a MemcachedProxy, it shows the share of each slot, and the keys that move with another size. It
    watches nothing. If a Memcached has the same name, use memcachedproxy/NAME.

    Exits with 0 if 99 % of the keys lie where one library with the current list of servers looks for them, with 1 if
    not, or with fewer than 20 new keys, with 6 if pods did not reply, with 7 if --disable-watch blocks it.
    """
    cr = get_with_proxies(kubectl, name)
    if is_proxy(cr):
        routes.show_ring(kubectl, cr, as_json=output == "json")
        return
    cache = with_pods(kubectl, cr)
    chosen, slots = watchable(cache, pods), slot_names(cache)
    if len(slots) == 1:
        _single(cache, output)
        return
    with progress(f"Watching for {seconds:g} s", len(chosen)) as shown:
        watch = Watch(kubectl, "mutations", seconds)
        stored = watch.each(chosen, _sample, lambda pod, text: Stored(pod.name, problem=text), shown.step)
    result = _compare(kubectl, cache, slots, stored, seconds)
    (_as_json if output == "json" else _as_text)(result, show_keys)
    raise SystemExit(_code(result))


def _single(cache: Cache, form: str) -> None:
    sentence = f"Memcached {cache.name} has one server: all keys belong to it."
    if form == "json":
        output.print_json({"servers": 1, "newKeys": 0, "agree": True, "matches": [], "pods": [], "result": [sentence]})
    else:
        output.show(output.console(), sentence)


def _sample(pod: Pod, log: Log) -> Stored:
    sample = Sample()

    def consume(lines: bytes) -> None:
        for key in watching.stored(lines):
            sample.add(key)

    return Stored(pod.name, sample, log.read(consume).lost)


def slot_names(cache: Cache) -> list[str]:
    """The names of the pods by slot: for pooled caches, those of the pods."""
    if is_pooled(cache.cr):
        return [pod.name for pod in cache.pods]
    size = integer(cache.cr, "spec", "size")
    return [f"{cache.name}-{slot}" for slot in range(1 if size is None else size)]


def _compare(kubectl: Kubectl, cache: Cache, slots: list[str], stored: list[Stored], seconds: float) -> Result:
    addresses = {text(obj, "metadata", "name"): text(obj, "status", "podIP") for obj in cache.objects}
    by_slot = {slot: address for slot, name in enumerate(slots) if (address := addresses.get(name))}
    servers = matching.Cache(len(slots), _forms(kubectl, cache.cr, by_slot, slots), by_slot)
    # A pod beyond the size is being deleted.
    samples = [(slots.index(pod.pod), pod.sample) for pod in stored if pod.pod in slots]
    keys = merged(samples, servers.limit)
    with progress("Comparing libraries"):
        finding = matching.compare(keys, servers)
    counts = {
        name: (
            sum(found == slot for _, found in keys),
            sum(found == slot for match in finding.matches[:1] for _, found in match.keys),
        )
        for slot, name in enumerate(slots)
    }
    return Result(seconds, slots, stored, finding, counts)


def _forms(kubectl: Kubectl, cr: Object, addresses: Mapping[int, str], slots: Sequence[str]) -> list[Form]:
    services = dict[int, str]()
    if mapping(cr, "spec", "service").get("perPod") is True:
        try:
            listed = kubectl.list(
                "list Services", "services", f"--selector={selector(cr)}", namespace=text(cr, "metadata", "namespace")
            )
        except PluginError:
            listed = []  # only the ring of Java clients contains these addresses
        known = {text(obj, "metadata", "name"): text(obj, "spec", "clusterIP") for obj in listed}
        services = {slot: known[name] for slot, name in enumerate(slots) if known.get(name)}
    return forms(cr, addresses, services, len(slots))


def _code(result: Result) -> ExitCode:
    if any(pod.problem for pod in result.stored):
        return ExitCode.POD
    return ExitCode.OK if sentences.agrees(result.finding, len(result.slots)) else ExitCode.NEGATIVE


def _sentences(result: Result) -> list[str]:
    return sentences.sentences(result.finding, result.slots, result.seconds)


def _as_text(result: Result, show_keys: bool) -> None:
    console = output.console()
    output.show(console, *_sentences(result))
    rows = [_cells(result, pod) for pod in result.stored]
    names, lines = output.without_empty(COLUMNS, rows, kept=4)
    output.show(console, "", *output.tables(names, lines, console.width, right=COLUMNS[1:4], folded=["PROBLEM"]))
    if show_keys and (shown := _misplaced(result)):
        keys = output.table("HAS IT", "LOOKED FOR IN", "KEY", folded=["KEY"])
        for row in shown:
            keys.add_row(*row)
        output.show(console, "", keys)


def _misplaced(result: Result) -> list[tuple[str, str, str]]:
    found = sentences.misplaced(result.finding, result.slots, MAX_SHOWN)
    return [(held, right, watching.readable(quote_from_bytes(key).encode())) for held, right, key in found]


def _cells(result: Result, pod: Stored) -> list[str]:
    keys, matching_keys = result.counts.get(pod.pod, (0, 0))
    lost = units.UNKNOWN if pod.lost is None else units.count(pod.lost)
    return [pod.pod, str(keys), units.percent(matching_keys / keys if keys else None), lost, pod.problem]


def _as_json(result: Result, show_keys: bool) -> None:
    finding = result.finding
    total = sum(keys for keys, _ in result.counts.values())
    document: dict[str, Any] = {
        "servers": len(result.slots),
        "seconds": result.seconds,
        "newKeys": total,
        "agree": sentences.agrees(finding, len(result.slots)),
        "matches": [_match(match, total) for match in finding.matches],
        "elsewhere": len(finding.rest),
        "pods": [_pod(result, pod) for pod in result.stored],
        "result": _sentences(result),
    }
    if show_keys:
        document["keys"] = [{"pod": held, "expected": right, "key": key} for held, right, key in _misplaced(result)]
    output.print_json(document)


def _match(match: matching.Match, total: int) -> dict[str, Any]:
    candidate = match.candidate
    return {
        "library": candidate.library.name,
        "form": sentences.form(candidate),
        "slots": list(candidate.servers.slots),
        "servers": [str(server) for server in candidate.servers.servers] if candidate.library.named else [],
        "hasPrefix": bool(candidate.prefix),
        "keys": len(match.keys),
        "share": round(len(match.keys) / total, 4),
    }


def _pod(result: Result, pod: Stored) -> dict[str, Any]:
    keys, matching_keys = result.counts.get(pod.pod, (0, 0))
    return {"pod": pod.pod, "newKeys": keys, "match": matching_keys, "lostLines": pod.lost, "problem": pod.problem}
