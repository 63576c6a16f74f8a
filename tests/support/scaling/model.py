"""The handler as steps: each is one command at one of the two servers of a key that moves, which executes it at once.

The functions have the names and the order of handler.lua.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, NamedTuple

Phase = Literal["plain old", "prepare", "move", "finish", "plain new"]
Place = Literal[0, 1]
OLD: Final[Place] = 0
NEW: Final[Place] = 1

Value = str | None
State = tuple[Value, Value]
"""The values of the old and of the new place."""
Command = Literal["get", "set", "delete", "add", "replace", "count", "vivify"]
Operation = Literal["fetch", "store", "remove", "add", "change", "count", "vivify"]
"""A request of a client: with `count` (ma N) and `vivify` (mg N), servers create an item that is missing."""


class Failed(NamedTuple):
    """The reply of a server that did not respond, and the result of a request that failed."""


FAILED: Final = Failed()
Reply = Value | bool | Failed


class Step(NamedTuple):
    """A command of a request. `value`: what it stores, if it does."""

    command: Command
    place: Place
    value: Value = None


@dataclass(frozen=True)
class Rules:
    """The protocol, or a mutant of it. `pairs`: the phases that may run at the same time.

    `deletes_first`: a store deletes at the other place before it stores. `ignores_errors`: an error of that deletion is
    no error of the request.
    """

    pairs: tuple[tuple[Phase, Phase], ...] = field(
        default=(("plain old", "prepare"), ("prepare", "move"), ("move", "finish"), ("finish", "plain new"))
    )
    deletes_first: bool = False
    ignores_errors: bool = False


class Request(NamedTuple):
    """A request through a pod of a phase. Its value is unlike all others."""

    operation: Operation
    phase: Phase
    value: str


class _NoReplyError(Exception):
    """A step whose reply the request needs did not respond."""


Steps = Generator[Step, Reply, Reply]
_Found = Generator[Step, Reply, tuple[Reply, bool]]
"""Steps to a result, and to whether no place has the item."""


class _Handler:
    """The handler in a phase."""

    def __init__(self, phase: Phase, rules: Rules) -> None:
        self._near: Place = OLD if phase in ("plain old", "prepare") else NEW
        self._far: Place = NEW if self._near == OLD else OLD
        self._clears = phase in ("prepare", "move", "finish")
        self._searches = phase in ("prepare", "move")
        self._strict = phase == "move"
        self._rules = rules

    def fetch(self, value: str) -> Steps:
        """A read: at near, at far, and at near again."""
        found, nowhere = yield from self._fetch(value)
        return _checked((yield Step("get", self._near))) if nowhere and self._searches else found

    def store(self, value: str) -> Steps:
        """A write that needs no item."""
        if self._clears and self._rules.deletes_first:
            _checked((yield Step("delete", self._far)))
            return _checked((yield Step("set", self._near, value)))
        _checked((yield Step("set", self._near, value)))
        return (yield from self._settled(True))

    def remove(self, value: str) -> Steps:
        """A deletion: at far, and at near."""
        if self._clears:
            _checked((yield Step("delete", self._far)))
        _checked((yield Step("delete", self._near)))
        return True

    def add(self, value: str) -> Steps:
        """A write that needs that there is no item."""
        if self._searches and _checked((yield Step("get", self._far))) is not None:
            return False
        added = _checked((yield Step("add", self._near, value)))
        return (yield from self._settled(True)) if added else False

    def change(self, value: str) -> Steps:
        """A write that needs an item, and acts where it is."""
        changed, nowhere = yield from self._change(value)
        if not (nowhere and self._searches):
            return changed
        again = _checked((yield Step("replace", self._near, value)))
        return (yield from self._settled(True)) if again else False

    def count(self, value: str) -> Steps:
        """A change that creates an item if there is none."""
        changed, nowhere = yield from self._change(value)
        if not nowhere:
            return changed
        _checked((yield Step("count", self._near, value)))
        return (yield from self._settled(True))

    def vivify(self, value: str) -> Steps:
        """A read that creates an item if there is none."""
        found, nowhere = yield from self._fetch(value)
        if not nowhere:
            return found
        made = _checked((yield Step("vivify", self._near, value)))
        return (yield from self._settled(made))

    def _fetch(self, _: str) -> _Found:
        first = yield Step("get", self._near)
        if first not in (None, FAILED) or not self._searches:
            return _checked(first), first is None
        second = yield Step("get", self._far)
        if second not in (None, FAILED):
            return second, False
        if first is FAILED or (second is FAILED and self._strict):
            raise _NoReplyError
        return None, second is None

    def _change(self, value: str) -> _Found:
        if _checked((yield Step("replace", self._near, value))):
            return (yield from self._settled(True)), False
        if not self._searches:
            return False, True
        second = yield Step("replace", self._far, value)
        if second is FAILED and self._strict:
            raise _NoReplyError
        return second is True, second is False

    def _settled(self, result: Reply) -> Steps:
        if self._clears:
            cleared = yield Step("delete", self._far)
            if not self._rules.ignores_errors:
                _checked(cleared)
        return result


def _checked(reply: Reply) -> Reply:
    """A reply. Raises _NoReplyError if there is none."""
    if reply is FAILED:
        raise _NoReplyError
    return reply


class Done(NamedTuple):
    """The end of a request."""

    result: Reply


@cache
def following(request: Request, rules: Rules, replies: tuple[Reply, ...]) -> Step | Done:
    """The next step of a request after these replies, or its end."""
    method: Callable[[str], Steps] = getattr(_Handler(request.phase, rules), request.operation)
    steps = method(request.value)
    try:
        step = next(steps)
        for reply in replies:
            step = steps.send(reply)
    except StopIteration as end:
        return Done(end.value)
    except _NoReplyError:
        return Done(FAILED)
    return step


def executed(state: State, step: Step) -> tuple[Reply, State]:
    """The reply of a server to a step, and the values after it."""
    value = state[step.place]
    present = value is not None
    match step.command:
        case "get":
            return value, state
        case "vivify" if present:
            return value, state
        case "add" if present:
            return False, state
        case "replace" if not present:
            return False, state
        case _:
            changed = (step.value, state[NEW]) if step.place == OLD else (state[OLD], step.value)
            return step.value if step.command == "vivify" else True, changed
