"""Reading of the audit log."""

from pathlib import Path

import pytest

from support.audit import Audit

LINE = b'{"verb": "get", "auditID": "%s"}\n'


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(b"", LINE % b"new", ["new"], id="empty log"),
        pytest.param(LINE % b"old", LINE % b"new", ["new"], id="whole lines"),
        pytest.param((LINE % b"old")[:9], (LINE % b"old")[9:] + LINE % b"new", ["new"], id="line being written"),
        pytest.param((LINE % b"old")[:-1], b"\n" + LINE % b"new", ["new"], id="line without its end"),
        pytest.param(LINE % b"old", LINE % b"new" + (LINE % b"next")[:9], ["new"], id="last line being written"),
    ],
)
def test_requests_begin_with_the_first_whole_line(
    tmp_path: Path, before: bytes, after: bytes, expected: list[str]
) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(before)
    audit = Audit(log)
    log.write_bytes(before + after)
    assert [request["auditID"] for request in audit.requests()] == expected


def test_whole_log_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(LINE % b"old")
    assert [request["auditID"] for request in Audit(log, whole=True).requests()] == ["old"]
