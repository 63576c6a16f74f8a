"""The checked spec of a MemcachedProxy."""

from memcached_api.memcachedproxy.types import check
from memcached_operator.engine.kind import once_per_spec

checked = once_per_spec(check)
