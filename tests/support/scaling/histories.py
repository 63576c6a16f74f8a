"""Whether an order of requests explains what their clients have seen."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from support.scaling.model import FAILED, Operation, Reply, Value


class Event(NamedTuple):
    """A request and its result. `before`: the numbers of the requests that had ended before it began."""

    operation: Operation
    value: str
    result: Reply
    before: frozenset[int]

    @property
    def reads(self) -> bool:
        """Whether the request has only returned a value: a `vivify` that returns its own has stored it."""
        return self.operation == "fetch" or (self.operation == "vivify" and self.result not in (self.value, FAILED))

    @property
    def has_changed(self) -> bool:
        """Whether the request was acknowledged, and has replaced or deleted what was there."""
        return not self.reads and self.result not in (FAILED, False)


History = tuple[Event, ...]


@cache
def is_explained(initial: Value, history: History) -> bool:
    """Whether the requests, one after another in some order, return these results. None of them has failed.

    The order is one in which a request is after all that had ended before it began. Before each request, the item may
    vanish: servers are caches. Of the reads during a write, each is explained without the others: until the write is
    acknowledged, pods of two phases may return the value before and the new one in turn.
    """
    numbers = frozenset(range(len(history)))
    during = [number for number in numbers if history[number].reads and _has_concurrent_write(number, history)]
    return all(_explained(initial, history, numbers.difference(during) | {number}) for number in during) and (
        bool(during) or _explained(initial, history, numbers)
    )


def _has_concurrent_write(number: int, history: History) -> bool:
    return any(
        not event.reads and number not in event.before and other not in history[number].before
        for other, event in enumerate(history)
    )


@cache
def _explained(value: Value, history: History, left: frozenset[int]) -> bool:
    if not left:
        return True
    for number in left:
        event = history[number]
        if event.before & left:
            continue
        if any(_explained(after, history, left - {number}) for after in _after(value, event)):
            return True
    return False


def _after(value: Value, event: Event) -> Iterator[Value]:
    """The values after a request that returned its result, for an item that may vanish before it."""
    for now in {value, None}:
        if event.reads:
            # A miss is never wrong.
            if event.result in (now, None):
                yield now
        elif event.operation == "remove":
            yield None
        elif event.result is False:
            # `add` has found an item. `change` may have missed one.
            if event.operation == "change" or now is not None:
                yield now
        elif event.operation in ("store", "count") or (event.operation == "change") == (now is not None):
            yield event.value


def is_fresh(history: History) -> bool:
    """Whether no read returns a value that an acknowledged request had certainly replaced.

    This is what remains with failed requests. Certainly: the request began after the one that stored the value had
    ended, successful or not, and the read began after the request.
    """
    return not any(_is_outdated(event, history) for event in history if event.reads and isinstance(event.result, str))


def _is_outdated(read: Event, history: History) -> bool:
    writers = [number for number, event in enumerate(history) if not event.reads and event.value == read.result]
    return any(history[number].has_changed and history[number].before.issuperset(writers) for number in read.before)
