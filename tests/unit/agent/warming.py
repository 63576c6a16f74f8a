"""A memcached process whose counters a test sets, and the annotation of its pod."""

from dataclasses import dataclass

from memcached_agent.warm.gate import ANNOTATION

from .samples import replies

BASE = replies()["stats"].decode()


@dataclass
class Process:
    """What `stats` shows. `started` and `time`: seconds of memcached's clock; `cpu`: seconds of CPU time."""

    pid: int = 1
    started: int = 1000
    time: int = 1000
    cpu: float = 0.5
    hits: int = 0
    misses: int = 0

    def answer(self, line: str) -> bytes | None:
        """The reply to `stats`, for FakeMemcached."""
        return self._reply() if line == "stats" else None

    def work(self, seconds: float, hits: float, misses: float) -> None:
        """Let time pass, with these hits and misses per second."""
        self.time += round(seconds)
        self.cpu += seconds / 100
        self.hits += round(hits * seconds)
        self.misses += round(misses * seconds)

    def _reply(self) -> bytes:
        values: dict[str, object] = {
            "pid": self.pid,
            "time": self.time,
            "uptime": self.time - self.started,
            "rusage_user": f"{self.cpu:.6f}",
            "rusage_system": "0.000000",
            "get_hits": self.hits,
            "get_misses": self.misses,
        }
        found: list[str] = []
        for line in BASE.split("\r\n"):
            words = line.split(" ")
            found.append(f"STAT {words[1]} {values[words[1]]}" if len(words) > 2 and words[1] in values else line)
        return "\r\n".join(found).encode()


def annotations(value: str | None) -> bytes:
    """The file of the downward API with this value of the annotation; None: without it."""
    own = "" if value is None else f'{ANNOTATION}="{value}"\n'
    return f'kubernetes.io/config.source="api"\n{own}x="line 1\\nline 2"\n'.encode()
