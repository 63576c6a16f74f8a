"""From an incident to its cause: an alert or a column shows it, and two commands of docs/alerts.md name the cause."""

import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from incidents import causes
from incidents.scraping import rules, scraping
from support.kube import eventually, kubectl
from support.plugin import kubectl_memcached
from support.waiting import SECRET_REPORTED

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs/alerts.md").read_text()

pytestmark = pytest.mark.usefixtures("cluster")


class Row(NamedTuple):
    """An incident of the page. `shown`: the alert, or the column of which command."""

    name: str
    shown: str
    first: str
    second: str


def rows() -> list[Row]:
    """The table of incidents."""
    section = PAGE.partition("## Everyday incidents\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([A-Zm][^|]+) \| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", section, re.MULTILINE)
    return [Row(*each) for each in cells]


ROWS: Final = {row.name: row for row in rows()}


def test_each_incident_of_the_page_has_its_cause() -> None:
    assert (len(ROWS), ROWS.keys()) == (10, causes.CAUSES.keys())


@pytest.mark.parametrize("name", causes.CAUSES)
def test_alert_or_column_shows_an_incident_and_two_commands_its_cause(name: str, namespace: str) -> None:
    row, cause = ROWS[name], causes.CAUSES[name]
    with cause.during(namespace):
        eventually(lambda: cause.first in output(row.first, namespace), SECRET_REPORTED, f"{row.first}: {cause.first}")
        eventually(lambda: cause.second in output(row.second, namespace), description=f"{row.second}: {cause.second}")
        alert = re.search(r"\[(Memcached\w+)\]", row.shown)
        if alert:
            without_delay = rules(namespace, causes.CACHE, delay=False)
            with scraping(causes.pods(namespace), {"rules.yaml": yaml.safe_dump(without_delay)}) as server:
                query = f'ALERTS{{alertname="{alert[1]}",alertstate="firing",namespace="{namespace}"}}'
                eventually(lambda: server.query(query), description=f"{alert[1]} fires")


def output(command: str, namespace: str) -> str:
    """What a command of the page prints, for the cache in this namespace; it may fail."""
    words = shlex.split(command.replace("-n shop", f"-n {namespace}"))
    done = kubectl_memcached(*words[2:]) if words[1] == "memcached" else kubectl(*words[1:], check=False)
    return " ".join(f"{done.stdout}{done.stderr}".split())
