"""Reasons why memcached does not reply."""

from typing import Final, Literal, get_args

Reason = Literal["refused", "unreachable", "timeout", "limit", "closed", "rejected", "protocol"]
"""Values of the label of `memcached_agent_connection_errors_total`.

refused: nothing listens on the port. unreachable: another error of the network. timeout: no connection or no reply in
time. limit: memcached is at its connection limit. closed: memcached closed the connection. rejected: memcached replied
with an error. protocol: the reply is invalid or too long.
"""
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


class MemcachedError(Exception):
    """memcached did not reply as expected. The message is one sentence for logs and for /healthz."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Final = reason
