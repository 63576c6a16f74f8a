"""The spec of a stored Memcached."""

from memcached_api.memcached.types import check
from memcached_operator.engine.kind import once_per_spec

checked = once_per_spec(check)
