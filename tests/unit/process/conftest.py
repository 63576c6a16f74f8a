"""Fixtures: the servers, plain and TLS ports, and frequent checks of timeouts."""

from pathlib import Path

import pytest

from memcached_process import connections

from .ports import NAMES, SECURE, SERVERS, Ports


def _ports(request: pytest.FixtureRequest, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Ports:
    name, _, how = request.param.partition(", ")
    return SERVERS[name](directory, monkeypatch, secure=how == "TLS")


@pytest.fixture(params=NAMES)
def ports(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ports:
    """Each server, plain and over TLS."""
    return _ports(request, tmp_path, monkeypatch)


@pytest.fixture(params=SECURE)
def secure(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ports:
    """Each server over TLS."""
    return _ports(request, tmp_path, monkeypatch)


@pytest.fixture(params=["plain", "TLS"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """None for a plain port, or a directory for the certificate of a TLS port."""
    return tmp_path if request.param == "TLS" else None


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check timeouts every 20 ms."""
    monkeypatch.setattr(connections, "SWEEP_PERIOD", 0.02)
