from datetime import timedelta
from typing import Any

import pytest

from memcached_operator.engine.lease import holder_of, taken
from unit.builders import NOW

AT = "2030-01-01T12:00:00.000000Z"
LATER = "2030-01-01T12:00:02.500000Z"


def held(by: str, **more: Any) -> dict[str, Any]:
    """The spec of a lease."""
    return {
        "holderIdentity": by,
        "leaseDurationSeconds": 15,
        "acquireTime": AT,
        "renewTime": AT,
        "leaseTransitions": 4,
    } | more


TAKEN: dict[str, tuple[Any, Any]] = {
    "a new one": ({}, held("me", leaseTransitions=0, acquireTime=LATER)),
    "renewed": (held("me"), held("me")),
    "from another": (held("other"), held("me", leaseTransitions=5, acquireTime=LATER)),
    "released": (held("", leaseDurationSeconds=1), held("me", leaseTransitions=5, acquireTime=LATER)),
    "emptied by hand": ({"holderIdentity": None}, held("me", leaseTransitions=1, acquireTime=LATER)),
}


@pytest.mark.parametrize(("before", "after"), TAKEN.values(), ids=TAKEN.keys())
def test_taken(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert taken(before, "me", NOW + timedelta(seconds=2.5)) == after | {"renewTime": LATER}


@pytest.mark.parametrize(
    ("spec", "holder"), [(held("me"), "me"), (held(""), ""), ({}, "")], ids=["held", "released", "empty"]
)
def test_holder(spec: dict[str, Any], holder: str) -> None:
    assert holder_of({"spec": spec}) == holder
