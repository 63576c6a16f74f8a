"""Why images were not pulled, from the Events of an older kubelet."""

from datetime import timedelta

import pytest

from memcached_operator.findings.failures import failures
from memcached_operator.findings.image_errors import subject, unexplained
from memcached_operator.kube.resource import Object
from unit.builders import NOW, pod, typed, waiting
from unit.findings.test_failures import ERRORS, RULES, only, with_container
from unit.findings.test_mounts import messages


def pulled(image: str, error: str, *, seen: int = 10, uid: str = "") -> Object:
    """The Event of a kubelet about an attempt. `seen`: seconds before now."""
    return {
        "involvedObject": {"uid": uid or pod()["metadata"]["uid"]},
        "message": f'Failed to pull image "{image}": {error}',
        "lastTimestamp": (NOW - timedelta(seconds=seen)).isoformat(),
    }


def backing_off(image: str) -> Object:
    """A pod whose image is pulled again later."""
    status = {**waiting("ImagePullBackOff", f'Back-off pulling image "{image}"'), "image": image}
    return with_container(status)


IMAGE: str = waiting("")["image"]


@pytest.mark.parametrize("error", [texts[0] for texts in ERRORS.values()])
def test_error_is_that_of_the_event_while_an_older_kubelet_does_not_repeat_it(error: str) -> None:
    """Before release 1.32, the message during its back-off has no error."""
    expected = only(with_container(waiting("ErrImagePull", error))).message
    events = [
        pulled(IMAGE, "older: not found", seen=400),
        pulled(IMAGE, error),
        pulled("example.com/other:1", "of another image", seen=1),
        pulled(IMAGE, "of another pod", seen=1, uid="other"),
        {**pulled(IMAGE, "without a time"), "lastTimestamp": None},
        {**pulled("", ""), "message": "Error: ErrImagePull"},
    ]
    for order in (events, events[::-1]):
        (failure,) = failures(typed(backing_off(IMAGE)), NOW, RULES, messages(*order))
        assert failure.message == expected


def test_back_off_is_the_cause_until_an_event_is_known() -> None:
    (failure,) = failures(typed(backing_off(IMAGE)), NOW, RULES)
    assert f'cannot be pulled: Back-off pulling image "{IMAGE}"; correct spec.image' in failure.message


def test_text_of_an_event_is_quoted_and_bounded() -> None:
    """Anyone who can create Events in the namespace can write it."""
    forged = pulled(IMAGE, f"not found; run kubectl delete memcached --all\n{'x' * 9000}")
    (failure,) = failures(typed(backing_off(IMAGE)), NOW, RULES, messages(forged))
    assert 'cannot be pulled: "not found; run kubectl delete memcached --all' in failure.message
    assert "\n" not in failure.message
    assert len(failure.message) < 1000


MANY: list[Object] = [
    {**each, "metadata": {**each["metadata"], "name": f"cache-{number}", "uid": str(9 - number)}}
    for number, each in enumerate([backing_off(IMAGE)] * 9)
]


@pytest.mark.parametrize(
    ("pods", "needed"),
    [
        ([backing_off(IMAGE), pod("healthy")], ["cache-1"]),
        ([with_container(waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: no'))], []),
        ([with_container(waiting("ErrImagePull", "no"))], []),
        (MANY[::-1], ["9", "8", "7", "6", "5", "4", "3", "2", "1"]),
    ],
)
def test_pods_without_an_error_are_found_by_name(pods: list[Object], needed: list[str]) -> None:
    found = unexplained(typed(*pods))
    assert [pod.metadata.uid for pod, _ in found] == needed
    assert all(images == {IMAGE} for _, images in found)


def test_subject_is_an_image_that_is_needed() -> None:
    text = pulled(IMAGE, "not found")["message"]
    assert subject(text, [IMAGE]) == IMAGE
    assert subject(text, ["example.com/other:1"]) is None
    assert subject("Error: ErrImagePull", [IMAGE]) is None
