"""Fixtures: plain and TLS ports, and frequent checks of timeouts."""

from pathlib import Path

import pytest

from memcached_process import connections


@pytest.fixture(params=["plain", "TLS"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """None for a plain port, or a directory for the certificate of a TLS port."""
    return tmp_path if request.param == "TLS" else None


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check timeouts every 20 ms."""
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 0.02)
