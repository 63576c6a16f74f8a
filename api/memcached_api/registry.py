"""The kinds of the API. The webhooks serve them; `make manifests generate` derives files in config/ and docs/."""

from typing import Any, Final

from memcached_api.appservice.types import APPSERVICE
from memcached_api.kinds import Kind
from memcached_api.memcached.types import MEMCACHED

KINDS: Final[tuple[Kind[Any], ...]] = (MEMCACHED, APPSERVICE)
"""Every kind, in the order of generated files."""
