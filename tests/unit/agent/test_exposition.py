"""Prometheus' text format, the metrics of the agent, and what is left out."""

import pytest

from memcached_agent.memcached.errors import REASONS
from memcached_agent.metrics import agent
from memcached_agent.metrics.exposition import Family, Metric, render
from memcached_agent.metrics.families import families

from .samples import reference, samples, types, value

NAME = "memcached_x"


@pytest.mark.parametrize("text", ["", "plain", 'a"b', "a\\b", "a\nb", "a\\n", "ä", "\ufffd", "a,b}"])
def test_label_values_are_escaped(text: str) -> None:
    family = Family(Metric(NAME, "gauge", "Help."), [((("name", text), ("other", "1")), 2)])
    assert samples(render([family]).decode()) == {(NAME, frozenset({("name", text), ("other", "1")})): 2}


@pytest.mark.parametrize("number", [0, 1, 2**64 - 1, 0.042991, 1e-7, 1e22])
def test_numbers_are_exact(number: float) -> None:
    text = render([Family(Metric(NAME, "counter", "Help."), [((), number)])]).decode()
    assert text.splitlines()[0] == f"# HELP {NAME} Help."
    assert text.split()[-1] == repr(number)
    assert value(text, NAME) == number


def test_families_without_samples_are_left_out() -> None:
    assert render([Family(Metric(NAME, "counter", "Help."), [])]) == b""


def test_metrics_of_the_agent() -> None:
    errors = dict.fromkeys(REASONS, 0)
    errors["timeout"] = 3
    text = render(agent.families("1.2.3", 4.5, errors)).decode()
    assert types(text) == {
        "memcached_agent_info": "gauge",
        "memcached_agent_uptime_seconds": "gauge",
        "memcached_agent_connection_errors_total": "counter",
    }
    assert value(text, "memcached_agent_info", version="1.2.3") == 1
    assert value(text, "memcached_agent_uptime_seconds") == 4.5
    found = {reason: value(text, "memcached_agent_connection_errors_total", reason=reason) for reason in REASONS}
    assert found == errors


@pytest.mark.parametrize("text", ["", "(null)", "-1", "nan"])
def test_sample_without_a_number_is_left_out(text: str) -> None:
    found = reference()
    exposed = render(families(found._replace(general=found.general | {"uptime": text}))).decode()
    full = render(families(found)).decode()
    assert types(full).keys() - types(exposed).keys() == {"memcached_uptime_seconds"}
    assert value(exposed, "memcached_up") == 1


@pytest.mark.parametrize("missing", ["cmd_set", "cas_misses", "cas_hits", "cas_badval"])
def test_number_of_sets_needs_all_its_statistics(missing: str) -> None:
    found = reference()
    general = {name: text for name, text in found.general.items() if name != missing}
    exposed = samples(render(families(found._replace(general=general))).decode())
    sets = ("memcached_commands_total", frozenset({("command", "set"), ("status", "hit")}))
    assert sets not in exposed
    assert sets in samples(render(families(found)).decode())


def test_number_of_sets_is_not_negative() -> None:
    found = reference()
    general = found.general | {"cmd_set": "1", "cas_hits": "2"}
    exposed = render(families(found._replace(general=general))).decode()
    assert value(exposed, "memcached_commands_total", command="set", status="hit") == 0


def test_version_is_bounded_and_escaped() -> None:
    found = reference()
    exposed = render(families(found._replace(general=found.general | {"version": '"' * 1000}))).decode()
    assert value(exposed, "memcached_version", version='"' * 64) == 1
