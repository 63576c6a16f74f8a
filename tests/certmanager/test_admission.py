"""cert-manager issues and renews the certificate of admission, with the overlay and with the chart.

The API server calls one admission process by the name of its Service. There is no kubelet: the tests write the content
of the Secret into its directory.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from certmanager.admission import Creations, memcached
from certmanager.certificates import content, renew
from certmanager.commands import run
from certmanager.installation import AUTHORITY, CERTIFICATE, NAMESPACE, SERVING, SOURCES, Installed, installed
from integration.control_plane import ControlPlane, until
from memcached_operator.certificates.pki import KeyPair
from memcached_operator.kube.client import ApiError
from memcached_operator.memcached.controller import MEMCACHEDS
from support.code_blocks import page_commands
from support.pki import Pair
from support.waiting import STEP

Record = Callable[[str, object], None]
DENIED = r'webhook "vmemcached\.cache\.example\.com" denied the request: .*: spec\.size: Invalid value: 0'


@pytest.fixture(scope="module", params=SOURCES)
def operator(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """The operator, as each source installs it."""
    with installed(plane, request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def test_certificate_is_issued_and_admission_is_called(operator: Installed, record_property: Record) -> None:
    record_property("certificate issued and trusted after (s)", f"{operator.seconds:.1f}")
    assert content(operator.plane, NAMESPACE, CERTIFICATE).keys() == {"tls.crt", "tls.key", "ca.crt"}
    assert operator.served() == leaf(operator.pair())
    stored = operator.plane.would_create(MEMCACHEDS, memcached())
    assert stored["spec"]["image"], "the mutating webhook sets it"
    with pytest.raises(ApiError, match=DENIED):
        operator.plane.would_create(MEMCACHEDS, memcached(size=0))


def test_renewed_certificate_is_served_without_a_failed_request(operator: Installed, record_property: Record) -> None:
    before = operator.pair()
    with Creations(operator.plane) as creations:
        creations.wait_for_more()
        renew(operator.plane, SERVING)
        after = operator.pair()
        assert (after.certificate != before.certificate, after.key != before.key, after.ca) == (True, True, before.ca)
        mount(operator, creations, record_property)
    check(creations, record_property)
    operator.admission.stop()
    operator.admission.start()
    assert operator.plane.would_create(MEMCACHEDS, memcached()), "the API server accepts it in a new connection"


def test_renewed_authority_is_trusted_beside_the_previous_one(operator: Installed, record_property: Record) -> None:
    before = operator.pair()
    with Creations(operator.plane) as creations:
        creations.wait_for_more()
        renew(operator.plane, AUTHORITY)
        creations.wait_for_more()
        renew(operator.plane, SERVING)
        until(lambda: operator.trusts(before.ca, operator.pair().ca), STEP)
        mount(operator, creations, record_property)
    check(creations, record_property)


def test_revoked_authority_is_not_trusted(operator: Installed, record_property: Record) -> None:
    before = operator.pair()
    with Creations(operator.plane) as creations:
        creations.wait_for_more()
        run(page_commands("operating.md", "#### With cert-manager\n"))
        until(lambda: operator.trusts(before.ca, operator.pair().ca), STEP)
        mount(operator, creations, record_property)
        run(page_commands("operating.md", "#### With cert-manager\n", 1))
        assert operator.trusts_only(operator.pair().ca)
        creations.wait_for_more()
    check(creations, record_property)
    assert operator.trusts_only(operator.pair().ca), "cert-manager does not add the previous one again"


def mount(operator: Installed, creations: Creations, record_property: Record) -> None:
    """Check that admission serves the previous certificate until its files are new, and then the new one."""
    assert operator.served() != leaf(operator.pair())
    creations.wait_for_more()
    operator.mount()
    started = time.monotonic()
    until(lambda: operator.served() == leaf(operator.pair()), STEP)
    record_property("new files are served after (s)", f"{time.monotonic() - started:.1f}")
    creations.wait_for_more()


def check(creations: Creations, record_property: Record) -> None:
    """Check that no request failed."""
    record_property("requests", creations.count)
    record_property("failed requests", len(creations.failures))
    assert creations.failures == []


def leaf(pair: KeyPair) -> bytes:
    """The certificate itself, as DER."""
    return Pair(pair.certificate, pair.key, 0).der
