"""The items that a user loses by following a remedy: from the fields that it changes, and the effects of the change."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from memcached_api.memcached.changes.remedies import Losing, losing
from memcached_api.memcached.types import MemcachedSpec, is_stable
from memcached_api.remedies import Action, Direction, listed

REPLACES: Final = "replaces the pods, and their items are lost"
THIS_REPLACES: Final = f". This {REPLACES}"
"""The sentence after a remedy that always replaces the pods."""

CHANGING: Final = {Direction.UP: "Raising", Direction.DOWN: "Lowering"}
"""The words for a change that replaces the pods in one direction only."""


def loss_with(spec: MemcachedSpec | None) -> Callable[[Sequence[Action]], str]:
    """The function that returns the loss by one of some actions, as sentences after them; empty if no item is lost.

    `spec`: None if it is invalid; then nothing is known to be kept.
    """

    def loss(actions: Sequence[Action]) -> str:
        sentences = [_deletes(spec)] if any(map(_lowers_size, actions)) else []
        sentences += _replacements([(action, losing(spec, action)) for action in actions])
        return "".join(f". {sentence}" for sentence in sentences)

    return loss


def no_loss(_: Sequence[Action]) -> str:
    """The loss while no memcached has run: there are no items."""
    return ""


def _replacements(found: Sequence[tuple[Action, Losing]]) -> Iterator[str]:
    """The sentences about the actions that replace the pods."""
    if len(found) == 1 and found[0][1] == {found[0][0].direction: found[0][0].fields}:
        yield f"This {REPLACES}"
        return
    names = dict[str, dict[str, None]]()
    for action, by_direction in found:
        for direction, fields in by_direction.items():
            word = "Changing" if direction is action.direction else CHANGING[direction]
            names.setdefault(word, {}).update(dict.fromkeys(fields))
    yield from (f"{word} {listed(each)} {REPLACES}" for word, each in names.items())


def _lowers_size(action: Action) -> bool:
    return action.direction is Direction.DOWN and "spec.size" in action.fields


def _deletes(spec: MemcachedSpec | None) -> str:
    """The loss by a lower size. A Deployment may lack the pods that it then does not need."""
    if spec is not None and is_stable(spec):
        return "Lowering spec.size deletes the highest slots, and their items are lost"
    return "Lowering spec.size can delete pods, and their items are then lost"
