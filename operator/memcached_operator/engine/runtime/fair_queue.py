"""The order in which waiting keys are processed: flows in turn, and how much of them at the same time."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")

LARGE, MAX_LARGE = 2**16, 2**20
"""Bytes from which a key is large, and of all large ones that are processed at the same time."""


class FairQueue(Generic[K]):
    """A queue per flow, served round-robin: a flow with many keys does not delay the other flows."""

    def __init__(self, flow: Callable[[K], Hashable]) -> None:
        self._flow = flow
        self._flows: OrderedDict[Hashable, deque[K]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, key: K) -> None:
        """Add a key to the end of its flow."""
        self._flows.setdefault(self._flow(key), deque()).append(key)
        self._count += 1

    def peek(self, excluded: Collection[Hashable] = ()) -> K | None:
        """The oldest key of the next flow that is not excluded; None if there is none."""
        return next((keys[0] for flow, keys in self._flows.items() if flow not in excluded), None)

    def popleft(self, excluded: Collection[Hashable] = ()) -> K:
        """Remove and return the oldest key of the next flow that is not excluded, which keeps its turn.

        Raises KeyError if there is none.
        """
        flow = next((flow for flow in self._flows if flow not in excluded), None)
        if flow not in self._flows:
            raise KeyError(flow)
        keys = self._flows.pop(flow)
        key = keys.popleft()
        if keys:
            self._flows[flow] = keys
        self._count -= 1
        return key

    def pop_longest(self) -> K:
        """Remove and return the newest key of the flow with the most keys. Raises ValueError if the queue is empty."""
        flow = max(self._flows, key=lambda flow: len(self._flows[flow]))
        key = self._flows[flow].pop()
        if not self._flows[flow]:
            del self._flows[flow]
        self._count -= 1
        return key


@dataclass(frozen=True)
class Limits(Generic[K]):
    """Limits of the keys that are processed at the same time.

    `in_flow`: keys of one flow; None for any number. `size`: the bytes of a key. Keys of LARGE bytes or more have
    together at most MAX_LARGE bytes, unless it is only one.
    """

    in_flow: int | None = None
    size: Callable[[K], int] = lambda _: 0


class ReadyKeys(Generic[K]):
    """The keys that wait for a worker, and those that are processed.

    Small and large keys are two fair queues, served alternately. A large key waits until it fits: no later large key
    goes first, so it does not wait longer than those before it need.
    """

    def __init__(self, flow: Callable[[K], Hashable], limits: Limits[K]) -> None:
        self._flow = flow
        self._limits = limits
        self._small = FairQueue(flow)
        self._large = FairQueue(flow)
        self._takes_large_next = True
        self._sizes: dict[K, int] = {}  # of the large keys that wait, as of when they were added
        self._processing: dict[K, int] = {}  # bytes of each key; 0 for a small one
        self._bytes = 0
        self._in_flow: Counter[Hashable] = Counter()
        self._full: set[Hashable] = set()  # the flows with as many keys in process as they may have
        self._paused: set[Hashable] = set()

    def __len__(self) -> int:
        """The number of keys that wait."""
        return len(self._small) + len(self._large)

    def append(self, key: K) -> None:
        """Add a key to the end of its flow."""
        if (size := self._limits.size(key)) < LARGE:
            self._small.append(key)
        else:
            self._append_large(key, size)

    def pause(self, flow: Hashable) -> None:
        """Take no key of a flow until `resume`."""
        self._paused.add(flow)

    def resume(self, flow: Hashable) -> None:
        """Take keys of a flow again."""
        self._paused.discard(flow)

    def take(self) -> K | None:
        """Remove the next key and count it as processed until `done`. None if none can be processed now."""
        if self._takes_large_next and (key := self._take_large()) is not None:
            return key
        key = self._take_small()
        return key if key is not None else self._take_large()

    def done(self, key: K) -> None:
        """Count a key as not processed any more."""
        self._bytes -= self._processing.pop(key)
        flow = self._flow(key)
        self._in_flow[flow] -= 1
        if not self._in_flow[flow]:
            del self._in_flow[flow]
        self._full.discard(flow)

    def _take_large(self) -> K | None:
        key = self._large.peek(excluded := self._full | self._paused)
        if key is None:
            return None
        if self._bytes and self._bytes + self._sizes[key] > MAX_LARGE:
            return None
        self._takes_large_next = False
        del self._sizes[key]
        return self._begin(self._large.popleft(excluded), self._limits.size(key))

    def _take_small(self) -> K | None:
        self._takes_large_next = True
        excluded = self._full | self._paused
        while self._small.peek(excluded) is not None:
            key = self._small.popleft(excluded)
            if (size := self._limits.size(key)) < LARGE:
                return self._begin(key, 0)
            self._append_large(key, size)  # it has grown while it waited
        return None

    def _append_large(self, key: K, size: int) -> None:
        self._sizes[key] = size
        self._large.append(key)

    def _begin(self, key: K, size: int) -> K:
        self._processing[key] = size
        self._bytes += size
        flow = self._flow(key)
        self._in_flow[flow] += 1
        if self._in_flow[flow] == self._limits.in_flow:
            self._full.add(flow)
        return key
