"""The certificate directory: first read, renewal in place and by symbolic link, and invalid pairs."""

import asyncio
import errno
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
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
from support import programs
from support.streams import until, unverified

from .pairs import EXPIRY, common_name, pair, write


def certificates_in(directory: Path) -> tuple[CertWatcher, Metrics]:
    metrics = Metrics()
    return CertWatcher(directory / "tls.crt", directory / "tls.key", metrics), metrics


def served(pairs: CertWatcher, name: str | None = "127.0.0.1", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> str:
    """The common name of the certificate that a client receives over a socket pair."""
    server_end, client_end = socket.socketpair()
    context = unverified()
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


Files = Mapping[str, bytes]
"""The contents of the files; one that is not listed does not exist."""


def write_in_place(directory: Path, files: Files) -> None:
    """Write the files; remove others."""
    for name in ("tls.crt", "tls.key"):
        if name in files:
            (directory / name).write_bytes(files[name])
        else:
            (directory / name).unlink(missing_ok=True)


def rename(directory: Path, files: Files) -> None:
    """Replace each file by renaming another to it."""
    for name in ("tls.crt", "tls.key"):
        if name in files:
            (directory / "new").write_bytes(files[name])
            (directory / "new").rename(directory / name)
        else:
            (directory / name).rename(directory / f"{name}.away")


def swap(directory: Path, files: Files) -> None:
    """Replace the symbolic link to the directory of the files, as a kubelet does."""
    version = directory / f"..{len(list(directory.iterdir()))}"
    version.mkdir()
    for name in ("tls.crt", "tls.key"):
        if name in files:
            (version / name).write_bytes(files[name])
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    (directory / "..new").symlink_to(version.name)
    (directory / "..new").rename(directory / "..data")


def files(certificate: bytes, key: bytes) -> Files:
    """The files of a pair."""
    return {"tls.crt": certificate, "tls.key": key}


ONE, TWO, THREE = (files(*pair(name)) for name in ("one", "two", "three"))
CERTIFICATE, KEY = "tls.crt", "tls.key"
INVALID: dict[str, Files] = {
    "a mismatched key": {**TWO, KEY: THREE[KEY]},
    "only a new key": {**ONE, KEY: TWO[KEY]},
    "only a new certificate": {**TWO, KEY: ONE[KEY]},
    "a truncated certificate": {**TWO, CERTIFICATE: TWO[CERTIFICATE][:300]},
    "a truncated key": {**TWO, KEY: TWO[KEY][:100]},
    "nothing": files(b"", b""),
    "garbage": files(b"nonsense", b"nonsense"),
    "no certificate": {KEY: TWO[KEY]},
    "no key": {CERTIFICATE: TWO[CERTIFICATE]},
    "no files": {},
}
WAYS = pytest.mark.parametrize("change", [write_in_place, rename, swap])


@WAYS
@pytest.mark.parametrize("invalid", INVALID.values(), ids=INVALID.keys())
def test_invalid_files_are_counted_once_and_the_old_pair_kept(
    tmp_path: Path, change: Callable[[Path, Files], None], invalid: Files
):
    change(tmp_path, ONE)
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    change(tmp_path, invalid)
    for _ in range(2):
        pairs.refresh()
        assert served(pairs) == "one"
        assert count(metrics, "certwatcher_read_certificate_errors_total") == 1
        assert count(metrics, "memcached_webhooks_certificate_last_read_successful") == 0
    write_in_place(tmp_path, TWO) if change is rename else change(tmp_path, TWO)
    pairs.refresh()
    assert served(pairs) == "two"
    assert count(metrics, "memcached_webhooks_certificate_last_read_successful") == 1


@WAYS
@pytest.mark.parametrize("chain", [b"", THREE[CERTIFICATE]], ids=["alone", "with a chain"])
def test_renewed_pair_is_read_once_and_served(tmp_path: Path, change: Callable[[Path, Files], None], chain: bytes):
    change(tmp_path, ONE)
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    change(tmp_path, {**TWO, CERTIFICATE: TWO[CERTIFICATE] + chain})
    for _ in range(2):
        pairs.refresh()
        assert served(pairs) == "two"
        assert count(metrics, "certwatcher_read_certificate_total") == 2
    change(tmp_path, {**TWO, CERTIFICATE: TWO[CERTIFICATE] + chain})
    pairs.refresh()
    assert count(metrics, "certwatcher_read_certificate_errors_total") == 0


UNREADABLE: dict[str, Callable[[Path], None]] = {
    "a directory": Path.mkdir,
    "a read error": lambda file: file.symlink_to("/proc/self/mem"),
    "a dangling link": lambda file: file.symlink_to("nowhere"),
    "a link to itself": lambda file: file.symlink_to(file.name),
}


@pytest.mark.parametrize("replace", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_old_pair_is_kept_while_the_key_cannot_be_read(tmp_path: Path, replace: Callable[[Path], None]):
    write_in_place(tmp_path, ONE)
    pairs, metrics = certificates_in(tmp_path)
    pairs.refresh()
    (tmp_path / KEY).unlink()
    replace(tmp_path / KEY)
    pairs.refresh()
    assert served(pairs) == "one"
    assert count(metrics, "certwatcher_read_certificate_errors_total") == 1
    (tmp_path / KEY).rename(tmp_path / "away")
    write_in_place(tmp_path, TWO)
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
        done = programs.run(
            [sys.executable, "-c", PROGRAM, tmp_path],
            stdin=terminal,
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=20,
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
