"""`status`: conditions with remedies, one row per pod, advice."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from kubectl_memcached import output
from kubectl_memcached.cluster.caches import Cache, get, with_pods
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.reading import readings
from kubectl_memcached.commands.options import cluster_command, name_argument, output_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import advice as advices
from kubectl_memcached.model import conditions, rows, sizing, units
from kubectl_memcached.model.objects import Object, integer, text
from kubectl_memcached.progress import progress

COLUMNS = ("POD", "NODE", "VERSION", "UP", "MEMORY", "HITS", "EVICT", "CONNS", "WARM", "CERT")
NUMBERS = ("UP", "MEMORY", "HITS", "EVICT", "CONNS", "WARM", "CERT")

AGENTLESS = "WARM and CERT are not shown, because the pods have no agent. spec.monitoring adds one."


@click.command()
@name_argument
@output_option
@cluster_command
def status(kubectl: Kubectl, name: str, output: str) -> None:
    """Show the conditions, the pods and what to do.

    Exits with 0 if the cache is ready, else with 1.
    """
    cr = get(kubectl, name)
    report = _report(kubectl, cr)
    (_as_json if output == "json" else _as_tables)(report)
    if not conditions.is_ready(cr):
        raise SystemExit(ExitCode.NEGATIVE)


class _Report:
    """The content of `status`. `problem`: the reason if the pods cannot be read, otherwise empty."""

    def __init__(self, cr: Object, pod_readings: Sequence[rows.Reading], problem: str) -> None:
        self.cr = cr
        self.now = time.time()
        self.rows = [rows.row(reading, self.now) for reading in pod_readings]
        self.agentless = all(reading.pod.endpoint.metrics_port is None for reading in pod_readings)
        self.problem = problem
        self.predictions = sizing.document(pod_readings)
        self.advice = advices.advice(cr, self.rows, pod_readings) if not problem else [problem]


def _report(kubectl: Kubectl, cr: Object) -> _Report:
    try:
        cache: Cache = with_pods(kubectl, cr)
    except PluginError as error:
        return _Report(cr, [], str(error))
    with progress("Reading pods", len(cache.pods)) as shown:
        return _Report(cr, readings(kubectl, cache, shown.step), "")


def _as_json(report: _Report) -> None:
    cr = report.cr
    output.print_json(
        {
            "namespace": text(cr, "metadata", "namespace"),
            "name": text(cr, "metadata", "name"),
            "ready": conditions.is_ready(cr),
            "image": text(cr, "spec", "image"),
            "size": integer(cr, "spec", "size"),
            "readyReplicas": integer(cr, "status", "readyReplicas"),
            "conditions": [conditions.document(condition) for condition in conditions.conditions(cr)],
            "pods": [rows.document(row) for row in report.rows],
            "predictions": report.predictions,
            "advice": report.advice,
        }
    )


def _as_tables(report: _Report) -> None:
    console = output.console()
    _summary(console, report.cr)
    _conditions(console, report.cr, report.now)
    if report.rows:
        console.print()
        console.print(pods_table(report.rows))
        if report.agentless:
            console.print(Text(AGENTLESS, style=output.DIM))
    if report.advice:
        console.print(Text("\nAdvice", style=output.TITLE))
        for sentence in report.advice:
            console.print(output.bullet(sentence, console.width))


def _summary(console: Console, cr: Object) -> None:
    ready = conditions.is_ready(cr)
    head = Text.assemble(
        ("Memcached ", ""),
        (f"{text(cr, 'metadata', 'namespace')}/{text(cr, 'metadata', 'name')}", output.TITLE),
        " is ",
        ("ready", output.GOOD) if ready else ("not ready", output.BAD),
    )
    size, there = integer(cr, "spec", "size"), integer(cr, "status", "readyReplicas")
    parts = [
        f"{there or 0} of {1 if size is None else size} pods ready",
        text(cr, "spec", "identity") or "Pooled",
        f"{memory} per pod" if (memory := text(cr, "status", "cache", "memory")) else "",
        *(label for label in ("tls", "auth", "monitoring") if cr.get("spec", {}).get(label) is not None),
    ]
    console.print(head)
    console.print(Text(", ".join(part for part in parts if part)))
    if image := text(cr, "spec", "image"):
        console.print(Text(f"image {image}", style=output.DIM))
    console.print()


def _conditions(console: Console, cr: Object, now: float) -> None:
    listed = conditions.conditions(cr)
    if not listed:
        return
    shown = output.table("CONDITION", "STATUS", "REASON", "SINCE", right=["SINCE"])
    for condition in listed:
        state = output.state(condition.status, _style(condition))
        shown.add_row(condition.type, state, condition.reason, _age(condition.since, now))
    console.print(shown)
    messages: set[str] = set()
    for condition in listed:
        if condition.healthy or condition.message in messages:
            continue
        messages.add(condition.message)
        console.print(Text.assemble(f"\n{condition.type}: ", (condition.message, "")))
        if condition.remedy:
            console.print(Text(f"Remedy: {condition.remedy}", style=output.TITLE))


def _style(condition: conditions.Condition) -> str:
    if condition.healthy:
        return output.GOOD
    return output.BAD if condition.type in ("Degraded", "Stalled") else output.WARN


def pods_table(pod_rows: Sequence[rows.Row]) -> Any:
    """The table of the pods, without the columns that are empty for all of them."""
    names, lines = output.without_empty(COLUMNS, [_cells(row) for row in pod_rows], kept=2)
    shown = output.table(*names, right=NUMBERS, folded=["POD", "NODE"], gap=1)
    for line in lines:
        shown.add_row(*line)
    return shown


def _cells(row: rows.Row) -> list[str | Text]:
    limit = row.max_connections if row.usable_connections is None else row.usable_connections
    conns = "" if row.connections is None else f"{row.connections:.0f}/{limit or 0:.0f}"
    memory = "" if row.memory_limit is None else f"{units.percent(row.memory_share)}/{units.size(row.memory_limit)}"
    days = row.certificate_days
    return [
        Text(row.pod, style="" if row.ready else output.BAD),
        row.node or units.UNKNOWN,
        row.version or units.UNKNOWN,
        units.duration(row.uptime),
        memory or units.UNKNOWN,
        units.percent(row.hit_ratio),
        units.count(row.evictions),
        conns or units.UNKNOWN,
        units.percent(row.warm),
        units.UNKNOWN if days is None else Text(f"{days}d", style=output.BAD if days < advices.EXPIRES else ""),
    ]


def _age(since: str, now: float) -> str:
    try:
        start = datetime.fromisoformat(since)
    except ValueError:
        return units.UNKNOWN
    return units.duration(now - start.timestamp())
