"""The items that a user loses by following a remedy: from the fields that the remedy names, and their effects."""

import re
from collections.abc import Callable
from typing import Final

from memcached_api.memcached.changes.effect import changeable
from memcached_api.memcached.effects import FIELDS, Effect, Needs
from memcached_api.memcached.types import MemcachedSpec, is_stable

PATH: Final = re.compile(r"\bspec(?:\.\w+)+")
PHRASES: Final = ("its name",)
"""The words with which remedies for errors of the API server mean fields of `spec.podTemplate`."""

ADDED: Final = re.compile(r"\bset\b.*\bspec\.(?:agent\.)?resources\b|\bephemeral-storage\b")
"""A remedy that sets amounts that may not be set, or other ones than CPU and memory: Kubernetes cannot change these
amounts of a running pod."""

LOWERED: Final = re.compile(r"\blower spec\.size\b")
"""A remedy that lowers the number of pods."""

REPLACES: Final = "replaces the pods, and their items are lost"
THIS_REPLACES: Final = f". This {REPLACES}"
"""The sentence after a remedy that always replaces the pods."""


def loss_with(spec: MemcachedSpec | None) -> Callable[[str], str]:
    """The function that returns the loss as a sentence after a remedy; empty if no item is lost.

    `spec`: None if it is invalid; then nothing is known to be kept.
    """

    def loss(remedy: str) -> str:
        named = list(dict.fromkeys([*PATH.findall(remedy), *(phrase for phrase in PHRASES if phrase in remedy)]))
        losing = [name for name in named if _loses(name, spec, adds=ADDED.search(remedy) is not None)]
        sentences = [_deletes(spec)] if LOWERED.search(remedy) else []
        if losing:
            what = "This" if losing == named and ", or " not in remedy else f"Changing {' or '.join(losing)}"
            sentences.append(f"{what} {REPLACES}")
        return "".join(f". {sentence}" for sentence in sentences)

    return loss


def _deletes(spec: MemcachedSpec | None) -> str:
    """The loss by a lower size. A Deployment may lack the pods that it then does not need."""
    if spec is not None and is_stable(spec):
        return "Lowering spec.size deletes the highest slots, and their items are lost"
    return "Lowering spec.size can delete pods, and their items are then lost"


def _loses(name: str, spec: MemcachedSpec | None, *, adds: bool) -> bool:
    """Whether a change of a field, or of a field in it, replaces the pods. `adds`: amounts are added."""
    rows = [row for field, row in FIELDS.items() if f"{name}.".startswith(f"{field}.") or field.startswith(f"{name}.")]
    if all(row.effect is Effect.NOTHING for row in rows):
        return name in PHRASES
    if spec is None or not is_stable(spec):
        return True
    kept = changeable(spec)
    sets_limits = name.startswith("spec.resources") and not name.startswith("spec.resources.requests")
    if sets_limits and spec.cache.memory is None:  # it is derived from the limit
        rows.append(FIELDS["spec.cache.memory"])
    return any(row.part not in kept or (adds and row.needs is Needs.AMOUNTS) for row in rows)
