"""All interleavings of a few requests for a key that moves, through pods of two phases that run at the same time."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Final, NamedTuple, get_args

from support.scaling.histories import Event, History, is_explained, is_fresh
from support.scaling.model import (
    FAILED,
    NEW,
    OLD,
    Done,
    Operation,
    Phase,
    Place,
    Reply,
    Request,
    Rules,
    State,
    Step,
    executed,
    following,
)

WRITES: Final[tuple[Operation, ...]] = ("store", "remove", "add", "change", "count", "vivify")
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
STARTS: Final[dict[str, State]] = {
    "nowhere": (None, None),
    "at the old place": ("initial", None),
    "at the new place": (None, "initial"),
    "at both, after a write that failed": ("initial", "other"),
}


class Progress(NamedTuple):
    """A request that has begun. `before`: the numbers of those that had ended then."""

    before: frozenset[int]
    replies: tuple[Reply, ...]


class Node(NamedTuple):
    """A moment: the values, the requests so far (None: not begun), and how many steps may still fail."""

    state: State
    requests: tuple[Progress | None, ...]
    failures: int


class Wrong(NamedTuple):
    """A history that no order explains, and the moment after the last request."""

    requests: tuple[Request, ...]
    start: State
    end: State
    history: History


class Outcome(NamedTuple):
    """The number of complete runs, and the wrong ones."""

    runs: int
    wrong: list[Wrong]


def explore(
    rules: Rules, writes: int, *, readers: bool, failures: int, operations: Sequence[Operation] = WRITES
) -> Outcome:
    """Run all interleavings of `writes` requests, and with `readers`, of another one that reads.

    `failures`: the number of steps that may fail, with or without an effect. `operations`: the kinds of writes.
    """
    runs, wrong = 0, list[Wrong]()
    for pair in rules.pairs:
        for start in _starts(pair, failures):
            for requests in _requests(pair, writes, operations, readers=readers):
                for node in _runs(requests, rules, start, failures):
                    runs += 1
                    wrong += _wrong(requests, rules, start, node, failures, pair)
    return Outcome(runs, wrong)


def _starts(pair: tuple[Phase, Phase], failures: int) -> Iterator[State]:
    """The values with which two phases may begin."""
    yield STARTS["nowhere"]
    yield STARTS["at the old place"]
    if "plain old" not in pair:
        yield STARTS["at the new place"]
    if failures and not {"plain old", "plain new"} & set(pair):
        yield STARTS["at both, after a write that failed"]


def _requests(
    pair: tuple[Phase, Phase], writes: int, kinds: Sequence[Operation], *, readers: bool
) -> Iterator[tuple[Request, ...]]:
    for operations in combinations_with_replacement(kinds, writes):
        for phases in product(pair, repeat=writes):
            made = [
                Request(*each, f"value {number}") for number, each in enumerate(zip(operations, phases, strict=True))
            ]
            yield tuple(made)
            if readers:
                yield from ((*made, Request("fetch", phase, "none")) for phase in pair)


def _runs(requests: tuple[Request, ...], rules: Rules, start: State, failures: int) -> Iterator[Node]:
    """The moments after the last request, one for each history and each state of the places."""
    stack = [Node(start, (None,) * len(requests), failures)]
    seen = set(stack)
    while stack:
        node = stack.pop()
        ended = _ended(requests, rules, node)
        if len(ended) == len(requests):
            yield node
        for number in set(range(len(requests))) - ended:
            new = set(_next(node, number, requests[number], rules, ended)) - seen
            seen |= new
            stack += new


def _ended(requests: tuple[Request, ...], rules: Rules, node: Node) -> frozenset[int]:
    return frozenset(
        number
        for number, (request, progress) in enumerate(zip(requests, node.requests, strict=True))
        if progress and isinstance(following(request, rules, progress.replies), Done)
    )


def _next(node: Node, number: int, request: Request, rules: Rules, ended: frozenset[int]) -> Iterator[Node]:
    """The moments after the next step of a request."""
    progress = node.requests[number] or Progress(ended, ())
    step = following(request, rules, progress.replies)
    assert isinstance(step, Step)
    reply, state = executed(node.state, step)
    outcomes = [(reply, state, node.failures)]
    if node.failures:
        outcomes += [(FAILED, each, node.failures - 1) for each in {state, node.state}]
    for found, after, failures in outcomes:
        listed = list(node.requests)
        listed[number] = Progress(progress.before, (*progress.replies, found))
        yield Node(after, tuple(listed), failures)


def _wrong(
    requests: tuple[Request, ...], rules: Rules, start: State, node: Node, failures: int, pair: tuple[Phase, Phase]
) -> Iterator[Wrong]:
    """The wrong histories of a run, to which reads in each later phase are added, also after the loss of a copy."""
    events = tuple(_event(*each, rules) for each in zip(requests, node.requests, strict=True))
    places = [place for place in (OLD, NEW) if node.state[place] is not None]
    for lost in (None, *places):
        history = (*events, *_reads(len(events), rules, node.state, lost, pair))
        fine = is_fresh(history) if failures or None not in start else is_explained(start[OLD] or start[NEW], history)
        if not fine:
            yield Wrong(requests, start, node.state, history)


def _event(request: Request, progress: Progress | None, rules: Rules) -> Event:
    assert progress
    end = following(request, rules, progress.replies)
    assert isinstance(end, Done)
    return Event(request.operation, request.value, end.result, progress.before)


@cache
def _reads(number: int, rules: Rules, state: State, lost: Place | None, pair: tuple[Phase, Phase]) -> History:
    """Reads after `number` requests, one after another: in both phases, before and after the loss, and in all later."""
    after: State = (None if lost == OLD else state[OLD], None if lost == NEW else state[NEW])
    later: tuple[Phase, ...] = PHASES[PHASES.index(pair[1]) + 1 :]
    groups: list[tuple[State, tuple[Phase, ...]]] = [(state, pair), (after, pair), (after, later)]
    found = [_read(Request("fetch", phase, "none"), rules, values) for values, phases in groups for phase in phases]
    return tuple(Event("fetch", "none", each, frozenset(range(number + i))) for i, each in enumerate(found))


def _read(request: Request, rules: Rules, state: State) -> Reply:
    """The result of a read beside which nothing happens."""
    replies: tuple[Reply, ...] = ()
    while isinstance(step := following(request, rules, replies), Step):
        replies = (*replies, executed(state, step)[0])
    return step.result
