"""Random objects: the API server's schema and CEL accept or deny each as the admission process does."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from faults.campaigns.fuzz import check_agreement
from faults.case import References
from faults.proxy import certificate
from faults.sandbox import Plane, Settings
from faults.webhook import KINDS
from integration.control_plane import ControlPlane, client_of
from memcached_api.kind import Kind

pytestmark = pytest.mark.server

SEED = 1000
"""Not used by the fuzz campaigns."""
COUNT = 200


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_schema_and_cel_agree_with_the_webhook(plane: ControlPlane, kind: Kind[Any], tmp_path: Path) -> None:
    async def run() -> None:
        async with client_of(plane.connection) as client:
            settings, own = Settings(), Plane(plane.connection, client, certificate(), tmp_path)
            async with own.sandbox(f"agreement-{kind.plural}", settings) as sandbox:
                await check_agreement(sandbox, References(own, settings), kind, SEED, COUNT)

    asyncio.run(run())
