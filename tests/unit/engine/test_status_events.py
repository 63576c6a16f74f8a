"""The Events that the controller writes."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from memcached_operator.engine.reporting.posted_events import MAX_MESSAGE_LENGTH, event_of
from memcached_operator.engine.reporting.reports import Report
from unit.builders import NOW, memcached


def reported(message: str = "no image", *, warning: bool = True, now: datetime = NOW) -> dict[str, Any]:
    """The Event about a Memcached."""
    return event_of(memcached(version=7), Report("ImageUnavailable", message, warning), now)


def test_event_names_the_object_and_has_the_texts_of_its_report() -> None:
    assert reported() == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "cache.1a470f7d7e7c8000", "namespace": "test"},
        "involvedObject": {
            "apiVersion": "cache.example.com/v1",
            "kind": "Memcached",
            "name": "cache",
            "namespace": "test",
            "uid": "cr",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "ImageUnavailable",
        "message": "no image",
        "source": {"component": "memcached-operator"},
        "reportingComponent": "memcached-operator",
        "firstTimestamp": "2030-01-01T12:00:00Z",
        "lastTimestamp": "2030-01-01T12:00:00Z",
        "count": 1,
    }


@pytest.mark.parametrize(("warning", "expected"), [(False, "Normal"), (True, "Warning")])
def test_event_has_the_type_of_its_report(warning: bool, expected: str) -> None:
    assert reported(warning=warning)["type"] == expected


@pytest.mark.parametrize("length", [MAX_MESSAGE_LENGTH, MAX_MESSAGE_LENGTH + 1])
def test_message_is_not_longer_than_the_api_server_accepts(length: int) -> None:
    assert len(reported(message="a" * length)["message"]) == 1024


def test_events_of_one_object_have_different_names() -> None:
    later = reported(now=NOW + timedelta(microseconds=1))
    assert later["metadata"]["name"] != reported()["metadata"]["name"]
