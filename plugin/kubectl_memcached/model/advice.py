"""Advice: sentences about the pods of a cache that its conditions do not contain."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kubectl_memcached.model import losses, scheduling, units
from kubectl_memcached.model.conditions import rollout, unobserved
from kubectl_memcached.model.losses import DOWN, UP, Sentence
from kubectl_memcached.model.objects import Object, integer, text
from kubectl_memcached.model.pods import AGENT, MEMCACHED, Container, Pod
from kubectl_memcached.model.shell import Shell
from kubectl_memcached.model.statistics import sizing
from kubectl_memcached.model.statistics.replies import GETS, number, summed
from kubectl_memcached.model.statistics.rows import Reading, Row, ratio

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
MAX_NAMES: Final = 3
"""Pods that a sentence names."""

Rule = Callable[[Row, Reading, Shell], Iterator[Sentence | str]]
"""What it yields without fields that the user is to change is a text."""


def of_pods(cr: Object, rows: Sequence[Row], readings: Sequence[Reading], shell: Shell) -> list[str]:
    """The sentences about the pods, the most important first."""
    found = (sentence.text for sentence in _of_each(rows, readings, shell))
    return [*found, *_of_all(cr, rows, readings, shell)]


def losses_by(cr: Object, rows: Sequence[Row], readings: Sequence[Reading], shell: Shell) -> list[str]:
    """What is lost by following these sentences."""
    changes = [change for sentence in _of_each(rows, readings, shell) for change in sentence.changes]
    return list(losses.sentences(cr, changes, guaranteed=any(reading.pod.guaranteed for reading in readings)))


def needs_attention(cr: Object, rows: Sequence[Row]) -> bool:
    """Whether waiting may not help: pods are missing, or the containers of a pod do not start."""
    return len(rows) < _size(cr) or any(row.stuck for row in rows)


def _size(cr: Object) -> int:
    size = integer(cr, "spec", "size")
    return 1 if size is None else size


def of_object(cr: Object, shell: Shell) -> Iterator[str]:
    """The sentences about the Memcached itself."""
    if sentence := unobserved(cr):
        yield sentence
    if rollout(cr).get("paused") is True:
        yield f"The rollout is paused: {shell.plugin('resume', text(cr, 'metadata', 'name'))} continues it."


def _of_each(rows: Sequence[Row], readings: Sequence[Reading], shell: Shell) -> Iterator[Sentence]:
    """Sentences about pods: each once, with the names of its pods."""
    for rule in RULES:
        names: dict[Sentence, list[str]] = {}
        for row, reading in zip(rows, readings, strict=True):
            if reading.pod.deleting and rule is not _deleted:
                continue
            for found in rule(row, reading, shell):
                sentence = Sentence(found) if isinstance(found, str) else found
                names.setdefault(sentence, []).append(row.pod)
        for sentence, pods in names.items():
            yield sentence._replace(text=f"{_named(pods, len(rows))}: {sentence.text}")


def _named(pods: Sequence[str], number_of_pods: int) -> str:
    if len(pods) <= MAX_NAMES:
        return ", ".join(pods)
    if len(pods) == number_of_pods:
        return f"all {number_of_pods} pods"
    return f"{', '.join(pods[:MAX_NAMES])} and {len(pods) - MAX_NAMES} more pods"


def _deleted(_: Row, reading: Reading, __: Shell) -> Iterator[str]:
    """A pod that ends as intended has no other problem."""
    if reading.pod.deleting:
        yield "it is being deleted"


def _silent(row: Row, reading: Reading, shell: Shell) -> Iterator[Sentence | str]:
    cause = next((each for each in reading.pod.containers if each.name == reading.pod.cause), None)
    if cause and cause.starting and row.stuck:
        yield f"{row.problem}: see {shell.kubectl('describe', 'pod', row.pod)}"
    elif row.problem:
        see = _see_log(reading.pod, cause, shell) if cause else ""
        remedy = scheduling.remedy(reading.pod.unscheduled)
        yield remedy._replace(text=f"{row.problem}{see}{remedy.text}")


def _containers(_: Row, reading: Reading, shell: Shell) -> Iterator[str]:
    """The other containers. Those that wait for their pod, and those of the sentence above, are left out."""
    for container in reading.pod.containers:
        if container.problem and container.name != reading.pod.cause and not container.starting:
            yield f"container {container.name} {container.problem}{_see_log(reading.pod, container, shell)}"


def _see_log(pod: Pod, container: Container, shell: Shell) -> str:
    """The end of a sentence about a container that does not run. Empty if it has no log."""
    if not container.logged:
        return ""
    previous = ["--previous"] if container.logged_before else []
    return f": see {shell.kubectl('logs', pod.name, '-c', container.name, *previous)}"


def _agent(row: Row, reading: Reading, shell: Shell) -> Iterator[str]:
    # Without a connection to memcached, kubectl or the pod can be the cause.
    runs = any(each.name == AGENT and not each.problem for each in reading.pod.containers)
    if row.agent_problem and not row.problem and runs and reading.pod.endpoint.metrics_port is not None:
        yield f"{row.agent_problem}: see {shell.kubectl('logs', row.pod, '-c', AGENT)}"
    for problem in reading.health.splitlines():
        yield f"the agent reports: {problem}"


def _unready(row: Row, reading: Reading, _: Shell) -> Iterator[str]:
    """The reason of the kubelet, if nothing else explains it."""
    explained = row.problem or reading.health or any(each.problem for each in reading.pod.containers)
    if reading.pod.unready and not explained and row.warm in (None, 1.0):
        yield f"the pod is not ready: {reading.pod.unready}"


def _killed(_: Row, reading: Reading, __: Shell) -> Iterator[Sentence]:
    for container in reading.pod.containers:
        if container.last_exit == "OOMKilled":
            times = f"{container.name} was out of memory and restarted {container.restarts} times"
            remedy = MEMORY.get(container.name, Sentence(""))
            yield remedy._replace(text=f"{times}{remedy.text}")


MEMORY: Final = {
    MEMCACHED: Sentence(": raise spec.resources.limits.memory", (("spec.resources.limits.memory", UP),)),
    AGENT: Sentence(": raise spec.agent.resources.limits.memory", (("spec.agent.resources.limits.memory", UP),)),
}
"""The remedy for a container that was out of memory."""


def _connections(row: Row, reading: Reading, _: Shell) -> Iterator[Sentence]:
    rejected = number(reading.stats, "listen_disabled_num") or number(reading.stats, "rejected_connections")
    if (row.connections_share or 0) >= CONNECTIONS:
        yield Sentence(
            f"{units.percent(row.connections_share)} of the connections are in use: raise spec.cache.maxConnections, "
            "or let clients keep fewer open",
            (("spec.cache.maxConnections", UP),),
        )
    elif rejected:
        yield Sentence(
            f"the connection limit was reached {units.count(rejected)} times since the start: raise "
            "spec.cache.maxConnections",
            (("spec.cache.maxConnections", UP),),
        )


def _insight(row: Row, reading: Reading, shell: Shell) -> Iterator[str]:
    if reading.metrics.insight == "unavailable":
        yield f"the agent cannot predict hit ratios: see {shell.kubectl('logs', row.pod, '-c', AGENT)}"


def _evictions(row: Row, reading: Reading, _: Shell) -> Iterator[Sentence]:
    if reading.metrics.predictions:
        return  # they show whether more memory would help
    evicted = ratio(row.evictions, number(reading.stats, "total_items"))
    # The used share of the memory does not matter: items use their chunks only in part, so a full cache may show 80%.
    if evicted is not None and evicted >= EVICTED:
        share = units.percent(evicted)
        yield Sentence(
            f"{share} of all stored items were evicted before they expired: raise spec.cache.memory",
            (("spec.cache.memory", UP),),
        )


def _misses(row: Row, reading: Reading, _: Shell) -> Iterator[str]:
    gets = summed(reading.stats, *GETS) or 0
    if row.hit_ratio is not None and gets >= MANY_GETS and row.hit_ratio < LOW_RATIO and row.warm in (None, 1.0):
        share = units.percent(row.hit_ratio)
        yield f"only {share} of the gets find an item: check the keys and times to live that clients use"


def _certificate(row: Row, _: Reading, __: Shell) -> Iterator[str]:
    days = row.certificate_days
    if days is not None and days < 0:
        yield "the certificate has expired: renew the Secret in spec.tls.secretName"
    elif days is not None and days < EXPIRES:
        yield f"the certificate expires in {days} days: renew the Secret in spec.tls.secretName"


def _noisy(_: Row, reading: Reading, __: Shell) -> Iterator[Sentence]:
    if (number(reading.settings, "verbosity") or 0) >= NOISY:
        yield Sentence(
            "the log contains the keys of all commands: lower spec.cache.verbosity", (("spec.cache.verbosity", DOWN),)
        )


RULES: Final[tuple[Rule, ...]] = (
    _deleted,
    _silent,
    _containers,
    _agent,
    _unready,
    _killed,
    _certificate,
    _connections,
    _insight,
    _evictions,
    _misses,
    _noisy,
)


def _of_all(cr: Object, rows: Sequence[Row], readings: Sequence[Reading], shell: Shell) -> Iterator[str]:
    yield from _missing(cr, sum(not reading.pod.deleting for reading in readings), shell)
    versions = sorted({row.version for row in rows if row.version})
    if len(versions) > 1:
        yield f"The pods run different versions of memcached, {' and '.join(versions)}: a rollout is not complete."
    nodes = {row.node for row in rows if row.node}
    if len(rows) > 1 and len(nodes) == 1 and not any(row.problem for row in rows):
        yield f"All pods run on node {next(iter(nodes))}. If it fails, all items are lost (docs/placing.md)."
    yield from _uneven(readings)
    yield from sizing.sentences(readings)


def _missing(cr: Object, number_of_pods: int, shell: Shell) -> Iterator[str]:
    if number_of_pods >= (size := _size(cr)):
        return
    number_there = f"{number_of_pods} of {size} pods exist." if number_of_pods else "There are no pods."
    if unobserved(cr):  # which has the reason
        yield number_there
        return
    events = shell.kubectl("get", "events", "--field-selector=reason=FailedCreate")
    yield f"{number_there} If this does not change within a minute, {events} shows the reason."


def _uneven(readings: Sequence[Reading]) -> Iterator[str]:
    """Compare the gets per second since the start. A client with an old list of servers sends too few to some pods."""
    rates: dict[str, float] = {}
    for reading in readings:
        gets, uptime = summed(reading.stats, *GETS), number(reading.stats, "uptime")
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
