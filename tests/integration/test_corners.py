"""The webhook and the API server agree about every spec of the corner table."""

import pytest

from corners import table
from corners.table import Entry
from integration.control_plane import ControlPlane
from memcached_operator.kube.client import ApiError
from memcached_operator.memcached.controller import MEMCACHEDS
from support.memcached import memcached


def disagreement(plane: ControlPlane, entry: Entry) -> str:
    """Why admission of a spec is wrong: the two sides differ, or the result is not the expected one. Else empty."""
    webhook, server = "; ".join(table.errors(entry)), denial(plane, entry)
    if bool(webhook) != bool(server) or (entry.valid is not None and entry.valid == bool(server)):
        return f"expected valid={entry.valid}; the webhook says {webhook!r}, the API server says {server!r}"
    return ""


def denial(plane: ControlPlane, entry: Entry) -> str:
    """The API server's message for a dry run, or an empty string if it accepts the spec."""
    try:
        plane.would_create(MEMCACHEDS, memcached("default", **entry.spec))
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        return error.message
    return ""


@pytest.mark.server
def test_webhook_and_api_server_agree_at_every_limit(plane: ControlPlane) -> None:
    found = {entry.name: disagreement(plane, entry) for entry in table.entries()}
    assert {name: problem for name, problem in found.items() if problem} == {}
