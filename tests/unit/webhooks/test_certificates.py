"""The certificate directory: first read, renewal in place and by symbolic link, and invalid pairs."""

import asyncio
import errno
import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from memcached_webhooks import certwatcher
from memcached_webhooks.certwatcher import CertWatcher
from memcached_webhooks.metrics import Metrics
from support.streams import until

from .pairs import EXPIRY, common_name, pair, write


def certificates_in(directory: Path) -> tuple[CertWatcher, Metrics]:
    metrics = Metrics()
    return CertWatcher(directory / "tls.crt", directory / "tls.key", metrics), metrics


def served(pairs: CertWatcher, name: str | None = "127.0.0.1", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> str:
    """The common name of the certificate that a client receives over a socket pair."""
    server_end, client_end = socket.socketpair()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = version

    def serve() -> None:
        with pairs.context.wrap_socket(server_end, server_side=True) as end:
            end.recv(1)

    server = threading.Thread(target=serve)
    server.start()
    with context.wrap_socket(client_end, server_hostname=name) as client:
        der = client.getpeercert(binary_form=True)
        client.sendall(b"x")
        server.join()
    assert der
    return common_name(der)


def count(metrics: Metrics, name: str) -> float | None:
    return metrics.registry.get_sample_value(name)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("name", ["webhook.example", None])
def test_pair_is_served_with_and_without_a_server_name(tmp_path: Path, name: str | None, version: ssl.TLSVersion):
    write(tmp_path, *pair("one"))
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    assert served(pairs, name, version) == "one"
    assert count(metrics, "memcached_webhooks_certificate_expiry_timestamp_seconds") == EXPIRY.timestamp()


def test_renewed_pair_is_served(tmp_path: Path):
    write(tmp_path, *pair("one"))
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    write(tmp_path, *pair("two"))
    pairs.refresh()
    pairs.refresh()
    assert served(pairs) == "two"
    assert count(metrics, "certwatcher_read_certificate_total") == 2


def test_renewal_by_symbolic_link_is_detected(tmp_path: Path):
    write(tmp_path / "..1", *pair("one"))
    write(tmp_path / "..2", *pair("two"))
    (tmp_path / "..data").symlink_to("..1")
    for file in ("tls.crt", "tls.key"):
        (tmp_path / file).symlink_to(f"..data/{file}")
    pairs, _ = certificates_in(tmp_path)
    pairs.refresh()
    assert served(pairs) == "one"
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    pairs.refresh()
    assert served(pairs) == "two"


def test_invalid_pair_is_counted_once_and_the_old_one_kept(tmp_path: Path):
    good, other = pair("one"), pair("two")
    write(tmp_path, *good)
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    for bad in ((other[0], good[1]), (b"nonsense", other[1]), (b"", b"")):
        write(tmp_path, *bad)
        pairs.refresh()
        pairs.refresh()
    assert served(pairs) == "one"
    assert count(metrics, "certwatcher_read_certificate_errors_total") == 3
    assert count(metrics, "memcached_webhooks_certificate_last_read_successful") == 0
    write(tmp_path, *other)
    pairs.refresh()
    assert served(pairs) == "two"
    assert count(metrics, "memcached_webhooks_certificate_last_read_successful") == 1


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
def test_deleted_file_is_counted_once_and_the_old_pair_kept(tmp_path: Path, missing: str):
    write(tmp_path, *pair("one"))
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    (tmp_path / missing).unlink()
    pairs.refresh()
    pairs.refresh()
    assert served(pairs) == "one"
    assert count(metrics, "certwatcher_read_certificate_errors_total") == 1
    write(tmp_path, *pair("two"))
    pairs.refresh()
    assert served(pairs) == "two"


def test_missing_files_before_the_first_pair_are_not_errors(tmp_path: Path):
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    write(tmp_path, *pair("one"))
    (tmp_path / "tls.key").rename(tmp_path / "tls.later")
    pairs.refresh()
    assert count(metrics, "certwatcher_read_certificate_errors_total") == 0
    assert not pairs.ready


def test_failed_read_is_retried_although_the_files_are_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path, *pair("one"))
    pairs, metrics = certificates_in(tmp_path)

    def read(*_: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(certwatcher, "_load", read)
        pairs.refresh()
    assert count(metrics, "certwatcher_read_certificate_errors_total") == 1
    pairs.refresh()
    assert served(pairs) == "one"


def test_new_pair_with_the_timestamps_of_the_old_one_is_served(tmp_path: Path):
    one = two = pair("one")
    while two == one or [len(part) for part in two] != [len(part) for part in one]:
        two = pair("two")
    write(tmp_path, *one)
    pairs, _ = certificates_in(tmp_path)
    pairs.refresh()
    times = {file: file.stat() for file in tmp_path.iterdir()}
    write(tmp_path, *two)
    for file, stat in times.items():
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    pairs.refresh()
    assert served(pairs) == "two"


PROGRAM = """
import fcntl, sys, termios
from pathlib import Path
from memcached_webhooks.certwatcher import CertWatcher
from memcached_webhooks.metrics import Metrics
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
pairs = CertWatcher(Path(sys.argv[1], "tls.crt"), Path(sys.argv[1], "tls.key"), Metrics())
pairs.refresh()
print(pairs.ready)
"""


def test_encrypted_key_does_not_prompt_for_a_passphrase(tmp_path: Path):
    certificate, key = pair("one")
    encrypted = load_pem_private_key(key, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    write(tmp_path, certificate, encrypted)
    controller, terminal = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path],
            stdin=terminal,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,
            timeout=20,
            check=False,
        )
    finally:
        os.close(controller)
        os.close(terminal)
    assert done.stdout == "False\n", done.stderr


def test_handshake_fails_without_a_pair(tmp_path: Path):
    pairs, _ = certificates_in(tmp_path)
    pairs.refresh()
    server_end, client_end = socket.socketpair()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def connect() -> None:
        with pytest.raises(ssl.SSLError):
            client.wrap_socket(client_end, server_hostname="x")

    peer = threading.Thread(target=connect)
    peer.start()
    with pytest.raises(ssl.SSLError):
        pairs.context.wrap_socket(server_end, server_side=True)
    peer.join()
    server_end.close()
    client_end.close()
    assert not pairs.ready


def test_wait_returns_with_the_first_pair_and_watch_reads_later_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(certwatcher, "POLL_PERIOD", 0.01)
    pairs, metrics = certificates_in(tmp_path)

    async def scenario() -> None:
        waiting = asyncio.create_task(pairs.wait_until_loaded())
        await asyncio.sleep(0.03)
        assert not waiting.done()
        write(tmp_path, *pair("one"))
        await asyncio.wait_for(waiting, 5)
        watching = asyncio.create_task(pairs.watch())
        write(tmp_path, *pair("two"))
        await until(lambda: count(metrics, "certwatcher_read_certificate_total") == 2)
        watching.cancel()

    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert served(pairs) == "two"


def test_minimum_version_is_tls_1_2(tmp_path: Path):
    pairs, _ = certificates_in(tmp_path)
    assert pairs.context.minimum_version == ssl.TLSVersion.TLSv1_2
    tls_1_2 = [cipher["name"] for cipher in pairs.context.get_ciphers() if cipher["protocol"] == "TLSv1.2"]
    assert all(name.startswith("ECDHE-") and ("GCM" in name or "CHACHA20" in name) for name in tls_1_2)
