"""The certificate files change, correctly and incorrectly, while clients send requests continuously.

tests/unit/webhooks/test_certificates.py shows each kind of change by itself.
"""

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial

from cryptography import x509

from faults.background import while_running
from faults.case import Case, References, in_gate
from faults.sandbox import Sandbox, wait_until
from faults.webhook import (
    ERRORS,
    READS,
    ContinuousClient,
    Webhook,
    client_context,
    client_session,
    files_of,
    pair,
    webhook,
)
from memcached_operator.certificates.pki import KeyPair

CERTIFICATE, KEY = "tls.crt", "tls.key"
RELOADS = 3.0
"""Seconds within which the process reads its files again several times: it does so every second."""
RELOAD_TIMEOUT = 20.0
"""Seconds until new files are in use, on a very busy machine."""
MIN_REQUESTS = 20
"""Minimum number of requests of each client in each case."""
Content = Mapping[str, bytes]


def swapped(admission: Webhook, content: Content) -> None:
    """Replace the symbolic link to the version, as a kubelet does."""
    admission.files.swap(content)


def written(admission: Webhook, content: Content) -> None:
    """Write plain files in place; remove those that are not listed."""
    for name in (CERTIFICATE, KEY):
        file = admission.files.directory / name
        if name in content:
            file.write_bytes(content[name])
        else:
            file.unlink()


@dataclass
class Setup:
    """An admission process, its first pair, the one that the case installs, and the last, valid one."""

    sandbox: Sandbox
    webhook: Webhook
    first: KeyPair
    second: KeyPair
    last: KeyPair

    async def wait_until_served(self, certificate: KeyPair) -> None:
        """Wait until new connections receive this certificate."""
        expected = serial(certificate)

        async def poll() -> bool:
            return await asyncio.to_thread(served_serial, self.webhook.port) == expected

        await wait_until(poll, RELOAD_TIMEOUT, "the new certificate is served")

    async def check_still_served(self, certificate: KeyPair) -> None:
        """Check that this certificate is served while the process reads its files several times."""
        end = time.monotonic() + RELOADS
        while time.monotonic() < end:
            found = await asyncio.to_thread(served_serial, self.webhook.port)
            self.sandbox.check(found, "no certificate is served")
            self.sandbox.check(found == serial(certificate), "another certificate is served")
            await asyncio.sleep(RELOADS / 10)

    async def wait_for_error(self, before: float) -> None:
        """Wait until the metric counts another error."""
        await _wait_for_rise(self.webhook, ERRORS, before, "the metric counts the error")


async def _wait_for_rise(admission: Webhook, series: str, before: float, what: str) -> None:
    """Wait until a metric of the process is higher than before."""

    async def poll() -> bool:
        return (await admission.metrics())[series] > before

    await wait_until(poll, RELOAD_TIMEOUT, what)


def served_serial(port: int) -> int | None:
    """Serial number of the certificate that a new connection receives; None if the handshake fails."""
    try:
        pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=10)
    except OSError:
        return None
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def serial(certificate: KeyPair) -> int:
    """Serial number of a pair's certificate."""
    return x509.load_pem_x509_certificate(certificate.certificate).serial_number


Scenario = Callable[[Setup], Awaitable[None]]


async def run_scenario(sandbox: Sandbox, _: References, scenario: Scenario, *, plain: bool) -> None:
    """Change files while two clients send requests, one of them on a persistent connection. No request may fail.

    In the end a valid pair is installed and must be served.
    """
    second, last = pair(), pair()
    first = same_length(second)
    async with AsyncExitStack() as stack:
        admission = await stack.enter_async_context(webhook(sandbox, first))
        if plain:
            await _use_plain_files(admission, files_of(first))
        context = client_context(first.ca, second.ca, last.ca)
        clients = [await stack.enter_async_context(client_session(context, fresh=fresh)) for fresh in (False, True)]
        calls = [ContinuousClient() for _ in clients]
        running = {
            f"client {number}": call.run(client, admission.url)
            for number, (call, client) in enumerate(zip(calls, clients, strict=True))
        }
        async with while_running(running):
            setup = Setup(sandbox, admission, first, second, last)
            await scenario(setup)
            (written if plain else swapped)(admission, files_of(last))
            await setup.wait_until_served(last)
            await wait_until(partial(_enough, calls), RELOAD_TIMEOUT, f"each client has sent {MIN_REQUESTS} requests")
        failed = [failure for each in calls for failure in each.failed]
        sandbox.check(not failed, f"{len(failed)} requests failed: {failed[:3]}")
        sandbox.check(len(admission.process.starts) == 1, "the process was restarted")
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")


def same_length(other: KeyPair) -> KeyPair:
    """A pair whose files are as long as those of another one, if possible."""
    expected = [len(content) for content in files_of(other).values()]
    tries = (pair() for _ in range(50))
    return next(
        (created for created in tries if [len(each) for each in files_of(created).values()] == expected), pair()
    )


async def _enough(calls: list[ContinuousClient]) -> bool:
    return min(each.count for each in calls) >= MIN_REQUESTS


async def _use_plain_files(admission: Webhook, content: Content) -> None:
    """Replace the links with plain files, and wait until the process has read these."""
    before = (await admission.metrics())[READS]
    _unlink(admission, content)
    await _wait_for_rise(admission, READS, before, "the plain files are read")


def _unlink(admission: Webhook, content: Content) -> None:
    """Replace the links with plain files."""
    for name, data in content.items():
        file = admission.files.directory / name
        file.with_suffix(".new").write_bytes(data)
        file.with_suffix(".new").rename(file)
    with suppress(FileNotFoundError):
        (admission.files.directory / "..data").unlink()


async def renewed(setup: Setup) -> None:
    """A new pair is served."""
    swapped(setup.webhook, files_of(setup.second))
    await setup.wait_until_served(setup.second)


async def invalid(
    setup: Setup, change: Callable[[Webhook, Content], None], content: Callable[[Content], Content]
) -> None:
    """Invalid files are an error, and the pair before them is still served. `content`: from those of a valid pair."""
    errors = (await setup.webhook.metrics())[ERRORS]
    change(setup.webhook, content(files_of(setup.second)))
    await setup.wait_for_error(errors)
    await setup.check_still_served(setup.first)


def mismatched_key(new: Content) -> Content:
    """The certificate, with the key of another one."""
    return {**new, KEY: pair().key}


def key_missing(new: Content) -> Content:
    """Only the certificate."""
    return {CERTIFICATE: new[CERTIFICATE]}


async def backdated(setup: Setup) -> None:
    """A new pair of the same length is written in place with the old modification times, as copies often have."""
    directory = setup.webhook.files.directory
    times = {name: (directory / name).stat() for name in (CERTIFICATE, KEY)}
    written(setup.webhook, files_of(setup.second))
    for name, stat in times.items():
        os.utime(directory / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    await setup.wait_until_served(setup.second)


SCENARIOS: dict[str, tuple[Scenario, bool]] = {
    "swapped/new-pair": (renewed, False),
    "swapped/mismatched-key": (partial(invalid, change=swapped, content=mismatched_key), False),
    "written/key-missing": (partial(invalid, change=written, content=key_missing), True),
    "written/backdated": (backdated, True),
}
"""Scenarios, and whether the files are plain ones."""


def cases() -> list[Case]:
    """One case per scenario."""
    found = [
        Case(f"certificates/{name}", partial(run_scenario, scenario=scenario, plain=plain), limit=90)
        for name, (scenario, plain) in SCENARIOS.items()
    ]
    return in_gate(found, *(each.name for each in found[:3]))
