"""A namespace with caches can be deleted. The simulation tests objects that are deleted and created again."""

import pytest

from support import kube
from support.audit import Audit
from support.kube import kubectl
from support.memcached import SMALL, memcached, wait_until_ready

pytestmark = pytest.mark.usefixtures("cluster")


def test_deleting_a_namespace_does_not_hang(audit: Audit) -> None:
    with kube.temporary_namespace() as name:
        kube.apply(memcached(name, size=2, resources=SMALL))
        kube.apply(memcached(name, "rolling-out", size=2, resources=SMALL))
        wait_until_ready(name)
        kubectl("delete", "namespace", name, "--timeout=110s")
        writes = audit.writes(name)
        assert writes.total() < 30, f"the operator works against the deletion: {writes}"
