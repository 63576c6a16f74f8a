"""Remedies as data: what a user can do about a problem. A sentence is rendered from it, and is never read.

What a remedy costs follows from the fields that it changes and the direction of the change.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple


class Direction(Enum):
    """The direction in which a remedy changes a field."""

    UP = "up"
    DOWN = "down"
    ADDED = "added"
    """The field gets an entry that it does not have, such as the limit of another resource."""
    ANY = "any"
    """The user chooses the value."""


class Action(NamedTuple):
    """One thing that a user can do."""

    text: str
    """The clause that says so, in the imperative."""
    fields: tuple[str, ...] = ()
    """The fields of the object's own spec of which it changes one; none if it changes something else."""
    direction: Direction = Direction.ANY

    def naming(self, *names: str) -> "Action":
        """The action with names of other objects for `{}` in its text."""
        return self._replace(text=self.text.format(*names))


Remedy = tuple[Action, ...]
"""Actions of which one is enough."""

NONE: Final[Remedy] = ()


def text_of(remedy: Remedy) -> str:
    """The remedy as a clause; empty if there is none."""
    return ", or ".join(action.text for action in remedy)


def listed(fields: Iterable[str]) -> str:
    """Fields as a clause. A field of the same section as the one before has its last name only."""
    names, before = list[str](), ""
    for field in fields:
        section, _, last = field.rpartition(".")
        names.append(last if section == before and section != "spec" else field)
        before = section
    return " or ".join(names)


def raised(*fields: str) -> Action:
    """Raise one of the fields."""
    return Action(f"raise {listed(fields)}", fields, Direction.UP)


def lowered(*fields: str) -> Action:
    """Lower one of the fields."""
    return Action(f"lower {listed(fields)}", fields, Direction.DOWN)


def added(field: str) -> Action:
    """Add an entry to a field."""
    return Action(f"add {field}", (field,), Direction.ADDED)


def corrected(*fields: str) -> Action:
    """Correct one of the fields."""
    return Action(f"correct {listed(fields)}", fields)


def relaxed(field: str) -> Action:
    """Relax the requirements in a field."""
    return Action(f"relax {field}", (field,))


def assigned(field: str) -> Action:
    """Set a field."""
    return Action(f"set {field}", (field,))


def changed(field: str) -> Action:
    """Change a field."""
    return Action(f"change {field}", (field,))
