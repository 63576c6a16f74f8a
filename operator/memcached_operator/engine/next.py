"""When an object is reconciled again: the one answer of each reconcile, whatever the cause."""

from typing import Final, NamedTuple

from memcached_operator.engine.runtime.queue import Queue
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key


class Next(NamedTuple):
    """What follows a reconcile if no event does."""

    result: str
    """The label of the metric, as in controller-runtime."""
    seconds: float | None = None
    """Seconds until the next reconcile; None without one."""
    keeps_backoff: bool = False
    """The backoff after an error goes on, because what has failed was not tried again."""
    error: ApiError | None = None
    """The error that requires a retry with a backoff."""

    def schedule(self, queue: Queue[Key], key: Key) -> str:
        """Enqueue the object accordingly. Returns the label. Raises the error, whose handler retries."""
        if self is AT_ONCE:
            queue.add(key)
            return self.result
        if self.seconds is not None:
            queue.add_after(key, self.seconds)
        if self.error is not None:
            raise self.error
        if not self.keeps_backoff:
            queue.forget(key)
        return self.result


AT_ONCE: Final = Next("requeue")
"""Again, behind the objects that are queued: the reconcile has seen an earlier state, or has not written the status."""
NOTHING: Final = Next("success")


def next_in(*causes: float | None, keeps_backoff: bool = False, error: ApiError | None = None) -> Next:
    """After the least of these seconds; None of a cause that needs no reconcile."""
    seconds = min((each for each in causes if each is not None), default=None)
    return Next("success" if seconds is None else "requeue_after", seconds, keeps_backoff, error)
