"""Advice: sentences about the pods of a cache that its conditions do not contain."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kubectl_memcached.model import sizing, units
from kubectl_memcached.model.conditions import rollout, unobserved
from kubectl_memcached.model.objects import Object, integer
from kubectl_memcached.model.replies import number
from kubectl_memcached.model.rows import Reading, Row, ratio

CONNECTIONS: Final = 0.8
"""The smallest used share of the connections for advice. The alert in docs/monitoring.md has the same threshold."""
EVICTED: Final = 0.01
"""The smallest evicted share of all stored items for advice about the memory."""
LOW_RATIO: Final = 0.5
MANY_GETS: Final = 1000
"""The smallest number of gets for advice about the hit ratio."""
UNEVEN: Final = 5
"""The smallest ratio of the gets per second of two pods for advice about lists of servers and keys in high demand."""
UNEVEN_UPTIME: Final = 600
"""Seconds that a pod must run before it is compared."""
EXPIRES: Final = 14
"""Days before the expiration. cert-manager renews certificates of 90 days 30 days before it."""
NOISY: Final = 2

Rule = Callable[[Row, Reading], Iterator[str]]


def advice(cr: Object, rows: Sequence[Row], readings: Sequence[Reading]) -> list[str]:
    """The sentences, the most important first."""
    return [*_of_object(cr), *_of_pods(rows, readings), *_of_all(cr, rows, readings)]


def _of_object(cr: Object) -> Iterator[str]:
    if sentence := unobserved(cr):
        yield sentence
    if rollout(cr).get("paused") is True:
        yield "The rollout is paused: `kubectl memcached resume` continues it."


def _of_pods(rows: Sequence[Row], readings: Sequence[Reading]) -> Iterator[str]:
    for rule in RULES:
        for row, reading in zip(rows, readings, strict=True):
            for sentence in rule(row, reading):
                yield f"{row.pod}: {sentence}"


def _silent(row: Row, _: Reading) -> Iterator[str]:
    if row.problem:
        yield row.problem


def _agent(row: Row, reading: Reading) -> Iterator[str]:
    if row.agent_problem and reading.pod.endpoint.metrics_port is not None:
        yield f"{row.agent_problem}: see `kubectl logs {row.pod} -c agent`"
    for problem in reading.health.splitlines():
        yield f"the agent reports: {problem}"


def _killed(row: Row, reading: Reading) -> Iterator[str]:
    if reading.pod.last_exit == "OOMKilled":
        yield f"memcached was out of memory and restarted {row.restarts} times: raise resources.limits.memory"


def _connections(row: Row, reading: Reading) -> Iterator[str]:
    rejected = number(reading.stats, "listen_disabled_num") or number(reading.stats, "rejected_connections")
    if (row.connections_share or 0) >= CONNECTIONS:
        yield (
            f"{units.percent(row.connections_share)} of the connections are in use: raise spec.cache.maxConnections, "
            "or let clients keep fewer open"
        )
    elif rejected:
        yield (
            f"the connection limit was reached {units.count(rejected)} times since the start: raise "
            "spec.cache.maxConnections"
        )


def _insight(row: Row, reading: Reading) -> Iterator[str]:
    if reading.metrics.insight == "unavailable":
        yield f"the agent cannot predict hit ratios: see `kubectl logs {row.pod} -c agent`"


def _evictions(row: Row, reading: Reading) -> Iterator[str]:
    if reading.metrics.predictions:
        return  # they show whether more memory would help
    evicted = ratio(row.evictions, number(reading.stats, "total_items"))
    # The used share of the memory does not matter: items use their chunks only in part, so a full cache may show 80%.
    if evicted is not None and evicted >= EVICTED:
        yield f"{units.percent(evicted)} of all stored items were evicted before they expired: raise spec.cache.memory"


def _misses(row: Row, reading: Reading) -> Iterator[str]:
    gets = number(reading.stats, "cmd_get") or 0
    if row.hit_ratio is not None and gets >= MANY_GETS and row.hit_ratio < LOW_RATIO and row.warm in (None, 1.0):
        share = units.percent(row.hit_ratio)
        yield f"only {share} of the gets find an item: check the keys and times to live that clients use"


def _certificate(row: Row, _: Reading) -> Iterator[str]:
    days = row.certificate_days
    if days is not None and days < 0:
        yield "the certificate has expired: renew the Secret in spec.tls.secretName"
    elif days is not None and days < EXPIRES:
        yield f"the certificate expires in {days} days: renew the Secret in spec.tls.secretName"


def _noisy(_: Row, reading: Reading) -> Iterator[str]:
    if (number(reading.settings, "verbosity") or 0) >= NOISY:
        yield "the log contains the keys of all commands: lower spec.cache.verbosity"


RULES: Final[tuple[Rule, ...]] = (
    _silent,
    _agent,
    _killed,
    _certificate,
    _connections,
    _insight,
    _evictions,
    _misses,
    _noisy,
)


def _of_all(cr: Object, rows: Sequence[Row], readings: Sequence[Reading]) -> Iterator[str]:
    if not rows:
        yield "There are no pods."
    versions = sorted({row.version for row in rows if row.version})
    if len(versions) > 1:
        yield f"The pods run different versions of memcached, {' and '.join(versions)}: a rollout is not complete."
    nodes = {row.node for row in rows if row.node}
    if len(rows) > 1 and len(nodes) == 1:
        yield f"All pods run on node {next(iter(nodes))}. If it fails, all items are lost (docs/placing.md)."
    size = integer(cr, "spec", "size")
    if size is not None and len(rows) < size and rows:
        yield f"{len(rows)} of {size} pods exist."
    yield from _uneven(readings)
    yield from sizing.sentences(readings)


def _uneven(readings: Sequence[Reading]) -> Iterator[str]:
    """Compare the gets per second since the start. A client with an old list of servers sends too few to some pods."""
    rates: dict[str, float] = {}
    for reading in readings:
        gets, uptime = number(reading.stats, "cmd_get"), number(reading.stats, "uptime")
        if gets is not None and uptime is not None and uptime >= UNEVEN_UPTIME:
            rates[reading.pod.name] = gets / uptime
    if len(rates) < 2 or max(rates.values()) * UNEVEN_UPTIME < MANY_GETS:
        return
    most, least = max(rates, key=rates.__getitem__), min(rates, key=rates.__getitem__)
    if rates[most] >= UNEVEN * max(rates[least], 1e-9):
        yield (
            f"{most} gets {rates[most]:.1f} requests per second, {least} {rates[least]:.1f}: a client uses an old list "
            "of servers (docs/clients.md), or a key is in high demand."
        )
