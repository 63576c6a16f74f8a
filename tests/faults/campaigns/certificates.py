"""The certificate files change, correctly and incorrectly, while clients send requests continuously.

tests/unit/webhooks/test_certificates.py shows each kind of change by itself.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from cryptography import x509

from faults.background import while_running
from faults.case import Case, References, in_gate
from faults.sandbox import Sandbox, wait_until
from faults.webhook import ERRORS, ContinuousClient, Webhook, client_context, client_session, files_of, pair, webhook
from memcached_operator.certificates.pki import KeyPair

KEY = "tls.key"
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

        async def poll() -> bool:
            return (await self.webhook.metrics())[ERRORS] > before

        await wait_until(poll, RELOAD_TIMEOUT, "the metric counts the error")


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


async def run_scenario(sandbox: Sandbox, _: References, scenario: Scenario) -> None:
    """Change files while two clients send requests, one of them on a persistent connection. No request may fail.

    In the end a valid pair is installed and must be served.
    """
    first, second, last = pair(), pair(), pair()
    async with AsyncExitStack() as stack:
        admission = await stack.enter_async_context(webhook(sandbox, first))
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
            swapped(admission, files_of(last))
            await setup.wait_until_served(last)
            await wait_until(partial(_enough, calls), RELOAD_TIMEOUT, f"each client has sent {MIN_REQUESTS} requests")
        failed = [failure for each in calls for failure in each.failed]
        sandbox.check(not failed, f"{len(failed)} requests failed: {failed[:3]}")
        sandbox.check(len(admission.process.starts) == 1, "the process was restarted")
        sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")


async def _enough(calls: list[ContinuousClient]) -> bool:
    return min(each.count for each in calls) >= MIN_REQUESTS


async def renewed(setup: Setup) -> None:
    """A new pair is served."""
    swapped(setup.webhook, files_of(setup.second))
    await setup.wait_until_served(setup.second)


async def invalid(setup: Setup) -> None:
    """The certificate with the key of another one is an error, and the pair before it is still served."""
    errors = (await setup.webhook.metrics())[ERRORS]
    swapped(setup.webhook, {**files_of(setup.second), KEY: pair().key})
    await setup.wait_for_error(errors)
    await setup.check_still_served(setup.first)


SCENARIOS: dict[str, Scenario] = {"swapped/new-pair": renewed, "swapped/mismatched-key": invalid}


def cases() -> list[Case]:
    """One case per scenario."""
    found = [
        Case(f"certificates/{name}", partial(run_scenario, scenario=scenario), limit=90)
        for name, scenario in SCENARIOS.items()
    ]
    return in_gate(found, *(each.name for each in found))
