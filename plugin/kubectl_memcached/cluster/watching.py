"""The log of memcached's requests, by its command `watch`, of several pods at the same time."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from kubectl_memcached.cluster.caches import Cache, Secrets, selected
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import Session, for_each, recovered, session
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.pods import Pod
from kubectl_memcached.model.statistics.rates import increase
from kubectl_memcached.model.statistics.replies import Stats, blocked, parse_stats

MAX_PODS: Final = 32
"""Pods that are watched at the same time: each needs a process of kubectl with about 40 MiB."""
MAX_LINES: Final = 5_000_000
"""Lines of a pod after which it is no longer watched: half a gigabyte through the API server."""
_DROPPED: Final = ("log_worker_dropped", "log_watcher_skipped")
"""Counters of lines that memcached did not log because its own buffer, or that of a watcher, was full."""

T = TypeVar("T")


@dataclass(frozen=True)
class Watched:
    """`seconds`: for which a pod was watched. `lost`: lines that memcached dropped meanwhile. None: not known."""

    seconds: float
    lost: int | None


@dataclass(frozen=True)
class Watch:
    """A watch of pods. `flag`: what memcached logs, `mutations` or `fetchers`."""

    kubectl: Kubectl
    flag: str
    seconds: float

    def each(
        self,
        pods: Sequence[Pod],
        work: "Callable[[Pod, Log], T]",
        failed: Callable[[Pod, str], T],
        done: Callable[[], None],
    ) -> list[T]:
        """The results of `work` for each pod, or of `failed` with the reason. `done` is called after each pod.

        Raises PluginError for an error that each pod has.
        """
        stopped, secrets = threading.Event(), Secrets(self.kubectl)
        try:
            one = recovered(lambda pod: work(pod, Log(self, pod, secrets, stopped)), failed)
            return for_each(pods, one, done, at_once=MAX_PODS)
        finally:
            stopped.set()


@dataclass(frozen=True)
class Log:
    """The log of one pod."""

    watch: Watch
    pod: Pod
    secrets: Secrets
    stopped: threading.Event

    def read(self, consume: Callable[[bytes], None]) -> Watched:
        """Pass whole lines to `consume` until the time is over. Raises PluginError."""
        with session(self.watch.kubectl, self.pod, self.secrets) as opened:
            before = _counters(opened)
            seconds = self._follow(opened, consume)
            return Watched(seconds, dropped(before, _counters(opened)))

    def _follow(self, opened: Session, consume: Callable[[bytes], None]) -> float:
        """Returns the seconds, which are fewer than wanted after MAX_LINES."""
        left = MAX_LINES
        with opened.memcached() as memcached:
            reply = memcached.line(f"watch {self.watch.flag}")
            if reply != "OK":
                raise denied(self.pod.name, memcached.version, self.watch.flag, reply)
            start = time.monotonic()
            for lines in memcached.logged(self.watch.seconds, self.stopped):
                consume(lines)
                left -= lines.count(b"\n")
                if left <= 0:
                    break
            return time.monotonic() - start


def watchable(cache: Cache, names: Sequence[str]) -> list[Pod]:
    """The pods with these names, or all. Raises PluginError if there are none or too many."""
    pods = selected(cache, names)
    if len(pods) > MAX_PODS:
        raise PluginError(
            f"Memcached {cache.name} has {len(pods)} pods. At most {MAX_PODS} can be watched: choose some with --pod.",
            ExitCode.USAGE,
        )
    return pods


def denied(pod: str, version: str, flag: str, reply: str) -> PluginError:
    """The error for a reply to `watch` that is not `OK`."""
    if sentence := blocked(reply):
        return PluginError(f"{pod}: {sentence}.", ExitCode.BLOCKED)
    return PluginError(
        f"memcached {version} of {pod} does not support `watch {flag}`: it replied {reply[:80]!r}", ExitCode.POD
    )


def dropped(before: Stats, after: Stats) -> int | None:
    """The lines that memcached dropped between two replies to `stats`. None after a restart."""
    amounts = [increase(before, after, name) for name in _DROPPED]
    return None if None in amounts else round(sum(amount or 0 for amount in amounts))


def _counters(opened: Session) -> Stats:
    with opened.memcached() as memcached:
        return parse_stats(memcached.lines("stats"))
