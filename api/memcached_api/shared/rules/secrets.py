"""The rule about the names of Secrets, in Python and in CEL."""

from memcached_api.validation.common_rules import MAX_SUBDOMAIN_LENGTH, SUBDOMAIN, matches
from memcached_api.validation.rules import Rule, value_rule


def secret_rule(path: str) -> Rule:
    """The rule that a field is the name of a Secret."""
    return value_rule(
        path,
        lambda name: len(name) <= MAX_SUBDOMAIN_LENGTH and matches(SUBDOMAIN, name),
        f"self.matches(r'{SUBDOMAIN}')",
        "must be the name of a Secret in this namespace: lower-case letters, digits, '-' and '.', at most "
        f"{MAX_SUBDOMAIN_LENGTH} characters",
    )
