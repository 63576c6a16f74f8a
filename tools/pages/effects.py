"""The table of docs/warm.md: what each change of a Memcached with slots does to its pods."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from memcached_api.effects import Effect, FieldEffect, Needs
from memcached_api.memcached.types import MEMCACHED
from pages.blocks import table

HEAD: Final = ("Change", "What happens to each pod", "Items", "Clients")
DONE: Final[dict[Effect, tuple[str, str, str]]] = {
    Effect.NOTHING: ("nothing", "kept", "no errors"),
    Effect.IN_PLACE: ("in place. memcached keeps running", "kept", "no errors"),
    Effect.RESIZE: ("[resized](#more-memory) in place. memcached keeps running", "kept", "no errors"),
    Effect.RESTART: (
        "[memcached restarts](#warm-restarts) in its container. If it needs more memory, the container is first "
        "[resized](#more-memory)",
        "kept, except with an older release of memcached",
        "errors from one slot at a time, for about 3 s plus the time to pull the image",
    ),
    Effect.REPLACE: (
        "replaced. This also applies to any change above whose condition in the first column is not met",
        "lost, one slot after the other",
        "errors from one slot at a time, until its new pod runs",
    ),
}
"""What each effect means, in the words of the page."""
BEFORE: Final = (
    (
        "certificates and passwords in their Secrets, unless these are [immutable](auth.md#immutable-secrets)",
        "memcached [reloads them](tls.md#what-happens-when-a-secret-changes)",
        "kept",
        "no errors",
    ),
)
AFTER: Final = (
    ("`size`, up", "new slots are added", "misses for the keys that move", "no errors"),
    ("`size`, down", "the highest slots are deleted", "lost in the deleted slots", "errors from the deleted slots"),
    ("an upgrade of the operator", "nothing", "kept", "no errors"),
)
"""What is no change of a field, or more than its effect."""
LEFT_OUT: Final = ("spec.size", "spec.identity")
"""In AFTER; and the one that cannot be changed."""


def blocks() -> dict[str, str]:
    """The generated blocks of docs/warm.md."""
    return {"changes": table([HEAD, *BEFORE, *_rows(), *AFTER])}


def _rows() -> Iterator[tuple[str, ...]]:
    shown = {name: row for name, row in MEMCACHED.fields.items() if name not in LEFT_OUT}
    ordered = sorted(shown, key=lambda name: (shown[name].effect, list(Needs).index(shown[name].needs)))
    for (effect, needs), names in groupby(ordered, key=lambda name: shown[name][:2]):
        fields = ", ".join(f"`{name.removeprefix('spec.')}`" for name in _sections(names, shown))
        yield fields if needs is Needs.NOTHING else f"{fields}: {needs.value}", *DONE[effect]


def _sections(names: Iterable[str], fields: dict[str, FieldEffect]) -> list[str]:
    """The names, with the name of a section for all of its fields if they have the same effect."""
    return list(dict.fromkeys(_section(name, fields) for name in names))


def _section(name: str, fields: dict[str, FieldEffect]) -> str:
    """The largest section of a field whose fields all have the same effect, or the field."""
    parts = name.split(".")
    for end in range(2, len(parts)):
        section = ".".join(parts[:end])
        if len({row[:2] for other, row in fields.items() if other.startswith(f"{section}.")}) == 1:
            return section
    return name
