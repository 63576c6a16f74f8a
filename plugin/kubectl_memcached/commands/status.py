"""`status`: conditions with remedies, one row per pod, advice."""

import time
from collections.abc import Sequence

import click
from rich.console import Console, RenderableType
from rich.text import Text

from kubectl_memcached import output
from kubectl_memcached.cluster import proxies as cluster_proxies
from kubectl_memcached.cluster import secrets as cluster_secrets
from kubectl_memcached.cluster.caches import Cache, get_with_proxies, with_pods
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.reading import readings
from kubectl_memcached.commands import described, fleet, proxies
from kubectl_memcached.commands.options import cluster_command, names_and_proxies, output_option
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model import advice as advices
from kubectl_memcached.model import conditions, disruptions, scaling, secrets, units
from kubectl_memcached.model.objects import Object, full_name, integer, is_proxy, ready_pods, text
from kubectl_memcached.model.proxies import uses
from kubectl_memcached.model.shell import Shell
from kubectl_memcached.model.statistics import rows, sizing
from kubectl_memcached.progress import progress

COLUMNS = ("POD", "NODE", "VERSION", "UP", "MEMORY", "DISK", "HITS", "EVICT", "CONNS", "WARM", "CERT")
NUMBERS = ("UP", "MEMORY", "DISK", "HITS", "EVICT", "CONNS", "WARM", "CERT")

AGENTLESS = "WARM and CERT are not shown, because the pods have no agent. spec.monitoring adds one."


@click.command()
@click.argument("name", required=False, default="", metavar="[NAME]", shell_complete=names_and_proxies)
@click.option("-A", "--all-namespaces", is_flag=True, help="One row for each cache of all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="With -A: only caches with these labels.")
@output_option
@cluster_command
def status(kubectl: Kubectl, name: str, all_namespaces: bool, selector: str, output: str) -> None:
    """Show the conditions, the pods and what to do. With -A: one row for each cache, and for each MemcachedProxy.

    NAME is that of a Memcached, or of a MemcachedProxy. If both have it, the Memcached is shown, and
    memcachedproxy/NAME shows the other. Exits with 0 if all these caches are ready, else with 1.
    """
    if bool(name) == all_namespaces or (selector and not all_namespaces):
        raise PluginError("Name the cache, or use -A for all caches.", ExitCode.USAGE)
    if all_namespaces:
        if not fleet.show(kubectl, selector, as_json=output == "json"):
            raise SystemExit(ExitCode.NEGATIVE)
        return
    cr = get_with_proxies(kubectl, name)
    if is_proxy(cr):
        proxies.show(kubectl, cr, as_json=output == "json")
    else:
        (_as_json if output == "json" else _as_tables)(_report(kubectl, cr))
    if not conditions.is_ready(cr):
        raise SystemExit(ExitCode.NEGATIVE)


class _Report:
    """The content of `status`. `problem`: the reason if the pods cannot be read, otherwise empty.

    `found`: the MemcachedProxies that use the cache, and sentences about MemcachedProxies. `events`: those about pods
    that Kubernetes stopped. `about_secrets`: sentences.
    """

    def __init__(
        self,
        cr: Object,
        shell: Shell,
        pod_readings: Sequence[rows.Reading],
        problem: str,
        found: tuple[Sequence[Object], Sequence[str]],
        events: Sequence[Object],
        about_secrets: Sequence[str] = (),
    ) -> None:
        self.cr = cr
        self.shell = shell
        self.proxies, about_proxies = found
        self.now = time.time()
        self.rows = [rows.row(reading, self.now) for reading in pod_readings]
        self.agentless = all(reading.pod.endpoint.metrics_port is None for reading in pod_readings)
        self.predictions = sizing.document(pod_readings)
        about_pods, losses = [problem] if problem else advices.of_pods(cr, self.rows, pod_readings, shell), list[str]()
        if not problem:
            losses = advices.losses_by(cr, self.rows, pod_readings, shell)
        about_pods += [stopped] if (stopped := disruptions.sentence(events, self.now)) else []
        self.advice = [*advices.of_object(cr, shell), *about_secrets, *about_pods, *losses, *about_proxies]
        useless = not problem and advices.needs_attention(cr, self.rows)
        self.remedies = conditions.remedies(cr, shell, waiting_is_useless=useless)


def _report(kubectl: Kubectl, cr: Object) -> _Report:
    namespace = text(cr, "metadata", "namespace")
    shell = Shell(namespace, tuple(kubectl.cluster_options))
    listed, hidden = cluster_proxies.listed(kubectl, namespace=namespace)
    found = [each for each in listed if uses(each, cr)], [hidden] if hidden else _same_name(cr, listed, shell)
    events = _events(kubectl, cr)
    try:
        cache: Cache = with_pods(kubectl, cr)
    except PluginError as error:
        return _Report(cr, shell, [], str(error), found, events)
    known = cluster_secrets.read(kubectl, secrets.fields(cr), namespace) if cache.pods else {}
    about_secrets = list(secrets.sentences(cr, cache.objects, known))
    with progress("Reading pods", len(cache.pods)) as shown:
        return _Report(cr, shell, readings(kubectl, cache, shown.step), "", found, events, about_secrets)


def _events(kubectl: Kubectl, cr: Object) -> list[Object]:
    """The Events about pods that Kubernetes stopped; none without the permission."""
    fields = f"--field-selector={disruptions.selector(cr)}"
    try:
        return kubectl.list("list Events", "events", fields, namespace=text(cr, "metadata", "namespace"))
    except PluginError:
        return []


def _same_name(cr: Object, listed: Sequence[Object], shell: Shell) -> list[str]:
    """How to show the MemcachedProxy with the name of the Memcached, if there is one."""
    name = text(cr, "metadata", "name")
    if all(text(each, "metadata", "name") != name for each in listed):
        return []
    return [f"A MemcachedProxy has this name too: {shell.plugin('status', f'memcachedproxy/{name}')} shows it."]


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
            **scaling.document(cr),
            "conditions": [
                conditions.document(each, report.remedies.get(each.type, "")) for each in conditions.conditions(cr)
            ],
            "pods": [rows.document(row) for row in report.rows],
            "predictions": report.predictions,
            "advice": report.advice,
            **proxies.documents(report.proxies, report.shell.options),
        }
    )


def _as_tables(report: _Report) -> None:
    console = output.console()
    _summary(console, report.cr)
    if lines := scaling.sentences(report.cr, report.now):
        output.show(console, *lines)
    described.table(console, report.cr, report.now)
    described.messages(console, report.cr, report.remedies)
    if report.rows:
        output.show(console, "", *pods_tables(report.rows, console.width))
        if report.agentless and any(row.version for row in report.rows):
            output.show(console, output.styled(AGENTLESS, output.DIM))
    if report.proxies:
        proxies.show_beside(console, report.proxies, report.cr, report.shell)
    if report.advice:
        output.show(console, output.styled("\nAdvice", output.TITLE))
        output.show(console, *(output.bullet(sentence, console.width) for sentence in report.advice))


def _summary(console: Console, cr: Object) -> None:
    ready = conditions.is_ready(cr)
    head = Text.assemble(
        ("Memcached ", ""),
        (full_name(cr), output.TITLE),
        " is ",
        ("ready", output.GOOD) if ready else ("not ready", output.BAD),
    )
    there, size = ready_pods(cr, integer(cr, "spec", "size"))
    parts = [
        f"{there} of {size} pods ready",
        text(cr, "spec", "identity") or "Pooled",
        f"{memory} per pod" if (memory := text(cr, "status", "cache", "memory")) else "",
        f"disk of {disk} per pod" if (disk := text(cr, "status", "cache", "extstore", "file")) else "",
        *(label for label in ("tls", "auth", "monitoring") if cr.get("spec", {}).get(label) is not None),
    ]
    output.show(console, head, ", ".join(part for part in parts if part))
    if image := text(cr, "spec", "image"):
        output.show(console, output.styled(f"image {image}", output.DIM))


def pods_tables(pod_rows: Sequence[rows.Row], width: int) -> list[RenderableType]:
    """The table of the pods, without the columns that are empty for all of them."""
    names, lines = output.without_empty(COLUMNS, [_cells(row) for row in pod_rows], kept=2)
    return output.tables(names, lines, width, right=NUMBERS, gap=1)


def _cells(row: rows.Row) -> list[str | Text]:
    limit = row.max_connections if row.usable_connections is None else row.usable_connections
    conns = "" if row.connections is None else f"{row.connections:.0f}/{limit or 0:.0f}"
    memory = "" if row.memory_limit is None else f"{units.percent(row.memory_share)}/{units.size(row.memory_limit)}"
    disk = "" if row.disk_limit is None else f"{units.percent(row.disk_share)}/{units.size(row.disk_limit)}"
    days = row.certificate_days
    return [
        output.styled(row.pod, "" if row.ready else output.BAD),
        row.node or units.UNKNOWN,
        row.version or units.UNKNOWN,
        units.duration(row.uptime),
        memory or units.UNKNOWN,
        disk or units.UNKNOWN,
        units.percent(row.hit_ratio),
        units.count(row.evictions),
        conns or units.UNKNOWN,
        units.percent(row.warm),
        units.UNKNOWN if days is None else Text(f"{days}d", style=output.BAD if days < advices.EXPIRES else ""),
    ]
