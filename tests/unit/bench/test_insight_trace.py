"""The public trace: only the expected one is kept, and how its keys are read."""

import hashlib
import lzma
from array import array
from pathlib import Path
from zipfile import ZipFile

import pytest

from cluster.errors import ClusterError
from insight import trace

DATA = lzma.compress(array(trace.TYPE, [7, 2**64 - 1, 7]).tobytes())


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file for the trace, beside an archive that contains DATA."""
    found = tmp_path / "trace.xz"
    with ZipFile(tmp_path / "archive.jar", "w") as archive:
        archive.writestr(trace.MEMBER, DATA)
    return found


def test_another_trace_is_rejected(target: Path) -> None:
    with pytest.raises(ClusterError, match="another trace"):
        trace.extract(target.with_name("archive.jar"), target)
    assert not target.exists()


def test_keys_of_the_first_gets(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "SHA256", hashlib.sha256(DATA).hexdigest())
    monkeypatch.setattr(trace, "ensure", lambda: target)
    trace.extract(target.with_name("archive.jar"), target)
    assert list(trace.keys(2)) == [7, 2**64 - 1]
