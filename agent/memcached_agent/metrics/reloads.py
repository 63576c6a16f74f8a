"""The metrics of the files that memcached reloads."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from memcached_agent.metrics.exposition import Family, Metric

SUCCESSFUL: Final = Metric(
    "memcached_agent_last_reload_successful", "gauge", "Whether memcached uses the current files of a source: 1 or 0."
)
SUCCEEDED: Final = Metric(
    "memcached_agent_last_reload_success_timestamp_seconds",
    "gauge",
    "When the files of a source were last loaded and verified, in seconds since 1970.",
)
EXPIRATION: Final = Metric(
    "memcached_agent_certificate_expiration_timestamp_seconds",
    "gauge",
    "When the certificate that memcached serves expires, in seconds since 1970.",
)


class Reload(NamedTuple):
    """The last reload of a source. `succeeded_at`: seconds since 1970; None before the first success."""

    successful: bool
    succeeded_at: float | None


def families(reloads: Mapping[str, Reload], expires: float | None) -> Iterator[Family]:
    """The metrics of each source, and of the certificate, which expires at `expires`; None if that is not known."""
    labels = {name: (("source", name),) for name in reloads}
    yield Family(SUCCESSFUL, [(labels[name], int(reload.successful)) for name, reload in reloads.items()])
    times = [(labels[name], round(reload.succeeded_at, 3)) for name, reload in reloads.items() if reload.succeeded_at]
    yield Family(SUCCEEDED, times)
    yield Family(EXPIRATION, [] if expires is None else [((), expires)])
