"""The conditions of an object as a table, and the messages of those that are not healthy, with remedies."""

from collections.abc import Mapping

from rich.console import Console

from kubectl_memcached import output
from kubectl_memcached.model import conditions, units
from kubectl_memcached.model.objects import Object

COLUMNS = ("CONDITION", "STATUS", "REASON", "SINCE")


def table(console: Console, cr: Object, now: float) -> None:
    """Print the conditions; nothing without any. `now`: seconds since 1970."""
    rows = [
        [each.type, output.styled(each.status, _style(each)), each.reason, _age(each.since, now)]
        for each in conditions.conditions(cr)
    ]
    if rows:
        output.show(console, "", *output.tables(COLUMNS, rows, console.width, right=["SINCE"]))


def messages(console: Console, cr: Object, remedies: Mapping[str, str], name: str = "") -> None:
    """Print the messages of conditions that are not healthy, each once, with their remedies, then that of Degraded.

    `remedies`: by type of condition. `name`: before each message.
    """
    prefix = f"{name}: " if name else ""
    seen: set[str] = set()
    for condition in conditions.conditions(cr):
        if condition.healthy or condition.message in seen:
            continue
        seen.add(condition.message)
        output.show(console, f"\n{prefix}{condition.type}: {condition.message}")
        if remedy := remedies.get(condition.type):
            output.show(console, output.styled(f"Remedy: {remedy}", output.TITLE))
    degraded = conditions.condition(cr, "Degraded")
    if degraded.healthy and degraded.message:  # the operator adds notices to it
        output.show(console, f"\n{prefix}Not degraded: {degraded.message}")


def _style(condition: conditions.Condition) -> str:
    if condition.healthy:
        return output.GOOD
    return output.BAD if condition.type in ("Degraded", "Stalled") else output.WARN


def _age(since: str, now: float) -> str:
    start = units.seconds(since)
    return units.UNKNOWN if start is None else units.duration(now - start)
