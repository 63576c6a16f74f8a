"""A memcached process whose counters a test sets, and the annotations of its pod."""

from dataclasses import dataclass

from memcached_agent.pod.annotations import PREFIX

from .samples import replies

BASE = replies()["stats"].decode()
MEBIBYTE = 2**20


@dataclass
class Process:
    """What `stats` shows. `started` and `time`: seconds of memcached's clock; `cpu`: seconds of CPU time.

    `limit`: MiB for items. `age`: seconds after which they move to the disk. `refusal`: the reply to a command that
    changes one of them, which then has no effect; empty: it is accepted.
    """

    pid: int = 1
    started: int = 1000
    time: int = 1000
    cpu: float = 0.5
    hits: int = 0
    misses: int = 0
    limit: int = 64
    age: int = 2**32 - 1
    refusal: bytes = b""

    def answer(self, line: str) -> bytes | None:
        """The reply to `stats` and to commands that change settings, for FakeMemcached."""
        if line.startswith("cache_memlimit "):
            self.limit = self.limit if self.refusal else int(line.split()[1])
            return self.refusal or b"OK\r\n"
        if line.startswith("extstore item_age "):
            self.age = self.age if self.refusal else int(line.split()[2])
            return self.refusal or b"OK\r\n"
        if line == "stats settings":
            return b"STAT ext_item_age %d\r\nEND\r\n" % self.age
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
            "limit_maxbytes": self.limit * MEBIBYTE,
        }
        found: list[str] = []
        for line in BASE.split("\r\n"):
            words = line.split(" ")
            found.append(f"STAT {words[1]} {values[words[1]]}" if len(words) > 2 and words[1] in values else line)
        return "\r\n".join(found).encode()


def annotations(value: str | None, **others: str) -> bytes:
    """The file of the downward API with these values of `warm-up` and of others; None: without it."""
    values = others if value is None else {"warm-up": value, **others}
    own = "".join(f'{PREFIX}{name}="{text}"\n' for name, text in values.items())
    return f'kubernetes.io/config.source="api"\n{own}x="line 1\\nline 2"\n'.encode()
