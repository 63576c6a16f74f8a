import pytest

from memcached_api.faults import REQUIRED, Fault, InvalidSpec, sentence, shown


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("spec.size", 0, "must be at least 1"), "spec.size: Invalid value: 0: must be at least 1"),
        (Fault("spec.image", 'a"b', "no"), 'spec.image: Invalid value: "a\\"b": no'),
        (Fault("a.name", None, "must be given", REQUIRED), "a.name: Required value: must be given"),
    ],
)
def test_reads_like_kubernetes_own(fault: Fault, text: str):
    assert str(fault) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        ({"a": 1}, '"object"'),
        ([1], '"array"'),
        ("é", '"é"'),
        ("x" * 300, '"' + "x" * 199 + "…"),
    ],
)
def test_values_are_shown_short(value: object, text: str):
    assert shown(value) == text


def test_an_invalid_spec_says_all():
    faults = [Fault("a", 1, "x"), Fault("b", 2, "y")]
    assert str(InvalidSpec(faults)) == "[a: Invalid value: 1: x, b: Invalid value: 2: y]"
    assert InvalidSpec(faults).faults == faults
    assert sentence(faults[:1]) == "a: Invalid value: 1: x"
