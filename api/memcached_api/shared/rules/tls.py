"""The rules about TLS for clients and about the ports that the agent uses, each in Python and in CEL."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from memcached_api.shared.monitoring import AGENT_PORTS
from memcached_api.shared.rules.secrets import secret_rule
from memcached_api.shared.tls import LOOPBACK_PORT
from memcached_api.validation.rules import Rule, field_rule
from memcached_api.values import is_object

Spec = Mapping[str, Any]

SECRETS: Final = tuple(map(secret_rule, ("spec.tls.secretName", "spec.tls.clientCASecretName")))

_CLIENT_CA: Final = (
    "must be set only with clientAuth Request or Require, because otherwise no client is verified; remove it or set "
    "spec.tls.clientAuth"
)


CLIENT_CA: Final = field_rule(
    "spec.tls",
    "clientCASecretName",
    lambda tls: tls.get("clientCASecretName") is None or tls.get("clientAuth") not in (None, "None"),
    "!has(self.clientCASecretName) || (has(self.clientAuth) && self.clientAuth != 'None')",
    _CLIENT_CA,
)


def agent_ports_rule(field: str, asks_for_agent: Callable[[Spec], bool], no_agent: str, sections: str) -> Rule:
    """The rule that a port of memcached is none of the agent's, while there is an agent.

    `no_agent`: CEL that a spec asks for none. `sections`: the fields that ask for one, for the message.
    """
    return field_rule(
        "spec",
        field,
        lambda spec: not asks_for_agent(spec) or spec.get(field) not in AGENT_PORTS,
        f"({no_agent}) || !has(self.{field}) || !(self.{field} in {list(AGENT_PORTS)})",
        f"must not be {AGENT_PORTS[0]} or {AGENT_PORTS[1]} with {sections}, because the agent listens on these ports; "
        "use another port",
    )


def loopback_port_rule(field: str) -> Rule:
    """The rule that a port of memcached is not the one on which it serves the agent, with TLS."""
    return field_rule(
        "spec",
        field,
        lambda spec: not is_object(spec.get("tls")) or spec.get(field) != LOOPBACK_PORT,
        f"!has(self.tls) || !has(self.{field}) || self.{field} != {LOOPBACK_PORT}",
        f"must not be {LOOPBACK_PORT} with spec.tls, because memcached serves the agent on this port; use another port",
    )
