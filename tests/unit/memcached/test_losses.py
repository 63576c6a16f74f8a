"""Each remedy that changes the spec says whether items are lost, as admission does of this very change."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
import pytest

from memcached_api.memcached.changes.remedies import losing
from memcached_api.memcached.types import MemcachedSpec
from memcached_api.remedies import Action, Direction, Remedy, assigned, corrected, lowered, text_of
from memcached_operator.findings.creation import KEEP_REMEDY
from memcached_operator.findings.creation_remedies import METADATA, REMEDIES
from memcached_operator.findings.image_errors import ERRORS, OTHER
from memcached_operator.memcached.containers import CONTAINERS, DISRUPTIONS, SCHEDULING
from memcached_operator.memcached.images import problem_notice
from memcached_operator.memcached.interventions import RECOMMENDED
from memcached_operator.memcached.losses import loss_with
from memcached_operator.parts.containers import STORAGE, SURGE
from unit.memcached.prices import ANY, CASES, DOWN, UP, Case, announced, expected


def remedies() -> Iterator[Remedy]:
    """The remedies of all messages."""
    for row in CONTAINERS.values():
        yield from (error.remedy(row) for error in (*ERRORS, OTHER))
        yield from (row.memory, *(remedy for _, remedy in row.start))
    yield from (*(remedy for _, remedy in REMEDIES), *SCHEDULING.values(), *DISRUPTIONS.values())
    yield from (RECOMMENDED, SURGE, METADATA, KEEP_REMEDY)


RATIO: Final = next(remedy[1] for pattern, remedy in REMEDIES if "ratio" in pattern.pattern)
ADVISED: Final = (
    Action("", ("spec.cache.maxConnections", "spec.cache.memory"), UP),
    Action("", ("spec.cache.verbosity",), DOWN),
)
"""By the plugin only."""
ALL: Final = [action for remedy in (*remedies(), ADVISED) for action in remedy]
ACTIONS: Final = list(dict.fromkeys((field, action.direction) for action in ALL for field in action.fields))


def is_possible(case: Case, field: str) -> bool:
    """Whether a Memcached can get a remedy: one is for an error of a warm restart. The size is tested below."""
    warm = case.spec.get("cache", {}).get("warmRestart", False)
    return warm if field == "spec.cache.warmRestart" else field != "spec.size"


def announced_price(case: Case, field: str, direction: Direction) -> Mapping[Direction, tuple[str, ...]]:
    """The same of a field that the user changes in a direction or, if that is ANY, in either direction."""
    if direction is not ANY:
        found = {direction: expected(case, field, direction)}
    else:
        up, down = (expected(case, field, each) for each in (UP, DOWN))
        found = {ANY: [name for name in up if name in down]}
        found[UP], found[DOWN] = ([name for name in each if name not in found[ANY]] for each in (up, down))
    return {each: tuple(names) for each, names in found.items() if names}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_price_is_what_admission_announces(case: Case) -> None:
    spec = msgspec.convert(case.spec, MemcachedSpec)
    possible = [each for each in ACTIONS if is_possible(case, each[0])]
    said = {each: losing(spec, Action("", (each[0],), each[1])) for each in possible}
    assert said == {each: announced_price(case, *each) for each in possible}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_price_of_an_image_without_known_problems_is_what_admission_announces(case: Case) -> None:
    old = {**case.spec, "image": "memcached:1.6.38"}
    (notice,) = problem_notice(msgspec.convert(old, MemcachedSpec), old["image"], {"name": "a", "namespace": "shop"})
    loses = announced({**old, "image": "memcached:1.6.45"}, old)
    assert notice.endswith(f": the cached items are {'lost' if loses else 'kept'}")


SENTENCES: Final[Mapping[str, tuple[str, Remedy, str]]] = {
    "all that it changes": ("Pooled", (corrected("spec.image"),), "This replaces the pods, and their items are lost"),
    "one of two": (
        "Stable, monitoring",
        SCHEDULING["Insufficient memory"],
        "Changing spec.cache.memory replaces the pods, and their items are lost",
    ),
    "one direction": (
        "Stable, monitoring",
        (RATIO,),
        "Lowering spec.resources.limits.memory replaces the pods, and their items are lost",
    ),
    "another word for a field": (
        "Stable",
        next(remedy for _, remedy in REMEDIES if "PriorityClass" in remedy[0].text),
        "Changing spec.podTemplate.spec.priorityClassName replaces the pods, and their items are lost",
    ),
    "fields of one section": (
        "Stable",
        SCHEDULING["node affinity/selector"],
        "Changing spec.podTemplate.spec.nodeSelector or affinity replaces the pods, and their items are lost",
    ),
    "size of slots": (
        "Stable, monitoring",
        (lowered("spec.size"),),
        "Lowering spec.size deletes the highest slots, and their items are lost",
    ),
    "size": (
        "Pooled",
        (lowered("spec.size"),),
        "Lowering spec.size can delete pods, and their items are then lost",
    ),
    "an amount that no running pod can get": (
        "Stable, monitoring",
        DISRUPTIONS[STORAGE][:1],
        "This replaces the pods, and their items are lost",
    ),
    "one more pod of a rollout": ("Pooled", SURGE, ""),
    "labels that a policy requires": (
        "Stable, monitoring",
        METADATA,
        "Changing spec.podTemplate.metadata replaces the pods, and their items are lost",
    ),
    "a higher size": ("Stable, monitoring", KEEP_REMEDY, ""),
    "another size": ("Pooled", (corrected("spec.size"),), ""),
    "nothing": ("Stable, warm restarts", (corrected("spec.image"),), ""),
    "something else": ("Pooled", (Action("add a node, not spec.image"),), ""),
}


@pytest.mark.parametrize(("name", "remedy", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_sentence(name: str, remedy: Remedy, sentence: str) -> None:
    found = loss_with(msgspec.convert(CASES[name].spec, MemcachedSpec))(remedy)
    assert found == (f". {sentence}" if sentence else "")


def test_invalid_spec_keeps_nothing() -> None:
    assert loss_with(None)((corrected("spec.image"),)) == ". This replaces the pods, and their items are lost"
    assert loss_with(None)((assigned("spec.rollout.paused"), Action("correct the image"))) == ""


@pytest.mark.parametrize("remedy", [*dict.fromkeys(remedies())])
def test_text_names_the_fields(remedy: Remedy) -> None:
    for action in remedy:
        named = [field.rpartition(".")[2] for field in action.fields]
        assert all(name in text_of(remedy) for name in named)
