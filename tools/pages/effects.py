"""The table of docs/warm.md: what each change of a Memcached with slots does to its pods."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from memcached_api.memcached.effects import FIELDS, Effect, FieldEffect, Needs
from pages.blocks import table

HEAD: Final = ("Change", "What happens to each pod", "Items", "Clients")
DONE: Final[dict[Effect, tuple[str, str, str]]] = {
    Effect.NOTHING: ("nothing", "none lost", "no error"),
    Effect.IN_PLACE: ("in place; memcached keeps running", "none lost", "no error"),
    Effect.RESIZE: ("[resized](#more-memory) in place; memcached keeps running", "none lost", "no error"),
    Effect.RESTART: (
        "[memcached restarts](#warm-restarts) in its container; what needs more memory also [resizes](#more-memory) it "
        "first",
        "none lost, except with an older release of memcached",
        "errors of one slot for about 3 s and the pull of the image",
    ),
    Effect.REPLACE: (
        "replaced, as by each change above that lacks what it needs",
        "those of each slot, in turn",
        "errors of one slot until its new pod runs",
    ),
}
"""What each effect means, in the words of the page."""
BEFORE: Final = (
    (
        "certificates and passwords in their Secrets",
        "memcached [reloads them](tls.md#what-happens-when-a-secret-changes)",
        "none lost",
        "no error",
    ),
)
AFTER: Final = (
    ("`size`, up", "new slots", "those of the keys that move", "no error"),
    ("`size`, down", "the highest slots are deleted", "theirs", "errors of these slots"),
    ("an upgrade of the operator", "nothing", "none lost", "no error"),
)
"""What is no change of a field, or more than its effect."""
LEFT_OUT: Final = ("spec.size", "spec.identity")
"""In AFTER; and the one that cannot be changed."""


def blocks() -> dict[str, str]:
    """The generated blocks of docs/warm.md."""
    return {"changes": table([HEAD, *BEFORE, *_rows(), *AFTER])}


def _rows() -> Iterator[tuple[str, ...]]:
    shown = {name: row for name, row in FIELDS.items() if name not in LEFT_OUT}
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
