"""The messages for users that the product makes while a test runs: one line each, with placeholders."""

import json
import re
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import wraps
from inspect import currentframe
from typing import Any, Final

Object = dict[str, Any]
Messages = Iterable[tuple[str, str]]
"""Titles and texts."""

PRODUCT: Final = ("memcached_operator.", "memcached_webhooks.", "kubectl_memcached.")
"""The packages whose messages are recorded. Tests call the same functions with invented texts."""
DERIVED: Final = ("Ready", "Stalled")
"""Types of conditions."""
MAX_LENGTH: Final = 1000
"""Characters of a line."""
PLACEHOLDERS: Final = (
    (re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"/tmp/[^\s:;,`'\"]+"), "<path>"),
    (re.compile(r"\b(about|after|for|in) (?:\d+(?:\.\d+)? ?[dhms])+\b"), r"\1 <duration>"),
    (re.compile(r"\b\d+ of \d+\b"), "<n> of <n>"),
    (re.compile(r"\bfrom \d+ to \d+ slots\b"), "from <n> to <n> slots"),
    (re.compile(r"-[a-z0-9]{8,10}-[a-z0-9]{5}\b"), "-<hash>-<id>"),
    (re.compile(r"\b([a-z][a-z-]*)-\d+\b"), r"\1-<n>"),
    (re.compile(r"(.{1,40}?)\1{7,}"), r"\1…"),
)
"""Replacements of what depends on the run, and of what multiplies equal sentences: counts, numbers of slots, filler."""


class _Recorder:
    """Collects messages while `active`. `observes`: those of observed functions, too."""

    def __init__(self) -> None:
        self.active = self.observes = False
        self.found: set[tuple[str, str]] = set()


_RECORDER: Final = _Recorder()


@contextmanager
def recorded(*, observes: bool = False) -> Generator[set[str]]:
    """The lines of the messages of the block; complete after it. `observes`: those of observed functions, too."""
    lines = set[str]()
    _RECORDER.found.clear()
    _RECORDER.active, _RECORDER.observes = True, observes
    try:
        yield lines
    finally:
        _RECORDER.active = _RECORDER.observes = False
        lines.update(_line(title, text) for title, text in tuple(_RECORDER.found))


def _line(title: str, text: str) -> str:
    for pattern, placeholder in PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    escaped = "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
    line = f"{title}: {escaped}"
    return line if len(line) <= MAX_LENGTH else f"{line[:MAX_LENGTH]}…"


def note_stored(_change: str, obj: Object) -> None:
    """Record the conditions of a stored object of ours, or an Event of the operator. For `ApiServer.subscribe`."""
    if not _RECORDER.active:
        return
    if obj["kind"] == "Event":
        if obj.get("source", {}).get("component") == "memcached-operator":
            _RECORDER.found.add((f"event {obj['type']} {obj['reason']}", obj["message"]))
    elif obj["apiVersion"].partition("/")[0].endswith("example.com"):
        _RECORDER.found.update(conditions(obj.get("status") or {}))


def conditions(status: Object) -> Messages:
    """Messages of conditions. That of a derived condition is left out if another condition has it."""
    conditions = status.get("conditions") or ()
    others = {each["message"] for each in conditions if each["type"] not in DERIVED}
    for each in conditions:
        if each["type"] not in DERIVED or each["message"] not in others:
            yield f"condition {each['type']}={each['status']} {each['reason']}", each["message"]


def _caller() -> str:
    """The module that called the function which calls this one."""
    frame = currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    return frame.f_globals["__name__"] if frame else ""


def observe(owner: Any, name: str, messages: Callable[[Any], Messages]) -> None:
    """Record the messages of each call of a function by the product, until the process exits.

    `messages`: of its result, or of its arguments if it returns None.
    """
    real = getattr(owner, name)

    @wraps(real)
    def call(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        if _RECORDER.observes and _caller().startswith(PRODUCT):
            _RECORDER.found.update(messages(arguments if result is None else result))
        return result

    setattr(owner, name, staticmethod(call) if name == "__new__" else call)
