"""The functions of the product that make messages for users, as unit tests call them."""

from collections.abc import Iterable
from typing import Any

import click
from rich.text import Text

from kubectl_memcached import output
from kubectl_memcached.errors import PluginError
from memcached_operator.engine.kind import DesiredStatus, Plan
from memcached_operator.engine.reporting.reports import Report
from memcached_operator.findings import disruptions
from memcached_operator.findings.failures import Failure
from memcached_operator.findings.finding import Intervention, Problem
from memcached_operator.findings.obstacles import Obstacle
from memcached_webhooks.review import ReviewResponse
from support.messages import Messages, conditions, observe


def observe_all() -> None:
    """Record their messages from now on."""
    observe(DesiredStatus, "__init__", lambda made: conditions(made[0].status))
    observe(Report, "__init__", lambda made: [(f"event {_type(made[0])} {made[0].reason}", made[0].message)])
    for finding in (Problem, Failure):
        observe(finding, "__init__", lambda made: [(f"finding {made[0].reason}", made[0].message)])
    observe(Intervention, "__new__", lambda made: [(f"finding {made.reason}", made.message)])
    observe(Obstacle, "__init__", lambda made: [("obstacle", made[0].message)])
    observe(Plan, "__init__", lambda made: (("notice", text) for text in made[0].notices))
    observe(disruptions.Notice, "__new__", lambda made: [("notice", made.message)])
    observe(ReviewResponse, "__new__", _response)
    observe(PluginError, "__init__", lambda made: [("plugin error", made[1])])
    observe(click, "echo", lambda said: _printed(said[:1] if "\n" not in str(said[0]) else ()))
    observe(output, "show", lambda shown: _printed(shown[1:]))


def _type(report: Report) -> str:
    return "Warning" if report.warning else "Normal"


def _response(response: ReviewResponse) -> Messages:
    if response.denial is not None:
        yield f"denial {response.denial.reason}", response.denial.message
    for warning in response.warnings:
        yield "warning", warning


def _printed(parts: Iterable[Any]) -> Messages:
    """The sentences, without tables and names. Items of lists are wrapped already."""
    for part in parts:
        if isinstance(part, str | Text):
            lines = str(part).replace("\n  ", " ").splitlines()
            yield from (("plugin", line) for line in lines if " " in line)
