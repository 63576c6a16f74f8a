"""The remedies for the errors with which the API server rejects a pod."""

import re
from typing import Final

from memcached_api.remedies import NONE, Action, Direction, Remedy, changed, corrected, lowered, raised

NAME: Final = r"([-.a-z0-9]{1,253})"

LACKS_METADATA: Final = re.compile(
    r"(?is)\bdenied (?:the )?request\b.*?"
    r"(?:\b(?:missing|requires?|required|needs?|provide|must (?:have|set|include|contain))\b.{0,120}?"
    r"\b(?:label|annotation)s?\b|"
    r"\b(?:label|annotation)s?\b.{0,120}?\b(?:missing|(?:is|are) required|must be (?:set|present)|not (?:set|found))\b)"
)
"""A policy or a webhook that denies an object because it lacks a label or an annotation. Each one has its own text."""

CHANGE_POLICY: Final = Action("change the policy")
METADATA: Final[Remedy] = (
    Action("add what it requires to spec.podTemplate.metadata", ("spec.podTemplate.metadata",), Direction.ADDED),
    CHANGE_POLICY,
)
"""The remedy for pods that it denies, and the one without a field for their metadata."""

EXCEEDED: Final = re.compile(rf"exceeded quota: {NAME}, requested: (?!count/replicasets)")
"""A quota that has too little left for a pod."""

QUOTA: Final = Action("raise ResourceQuota {}")
RANGE: Final = Action("change the LimitRange")


def _of_agent(action: Action) -> Action:
    """The same action for the container of the agent, which not every kind and not every pod has."""
    return action._replace(text=f"{action.text} for the container agent")


def _named(create: str, field: str) -> Remedy:
    """The remedy for an object that a pod names in a field of `spec.podTemplate.spec`, and that does not exist."""
    return Action(create), corrected(f"spec.podTemplate.spec.{field}")


REMEDIES: Final[tuple[tuple[re.Pattern[str], Remedy], ...]] = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        # kubernetes plugin/pkg/admission/resourcequota
        (rf"exceeded quota: {NAME}, requested: count/replicasets\.apps=", (QUOTA,)),
        (rf"exceeded quota: {NAME}, requested: (?:count/)?pods=\d+, ", (QUOTA, lowered("spec.size"))),
        (rf"exceeded quota: {NAME},", (QUOTA, lowered("spec.size", "spec.resources"))),
        (
            rf"failed quota: {NAME}: must specify",
            (
                Action("set what it names in spec.resources", ("spec.resources",), Direction.ADDED),
                _of_agent(Action("set it in spec.agent.resources", ("spec.agent.resources",), Direction.ADDED)),
                Action("create a LimitRange with default values"),
            ),
        ),
        # kubernetes plugin/pkg/admission/limitranger
        (
            r"maximum \S{1,253} usage per (?:Container|Pod) is",
            (RANGE, lowered("spec.resources"), _of_agent(lowered("spec.agent.resources"))),
        ),
        (
            r"minimum \S{1,253} usage per (?:Container|Pod) is",
            (RANGE, raised("spec.resources"), _of_agent(raised("spec.agent.resources"))),
        ),
        (
            r" limit to request ratio per ",
            (RANGE, changed("spec.resources"), _of_agent(changed("spec.agent.resources"))),
        ),
        # kubernetes pkg/apis/core/validation: admission of a kind rejects a request above its own limit
        (
            r"must be less than or equal to \S{1,253} limit of ",
            (
                Action(
                    "a LimitRange of this namespace sets a default limit below the request: set spec.resources.limits",
                    ("spec.resources.limits",),
                    Direction.ADDED,
                ),
                _of_agent(Action("set spec.agent.resources.limits", ("spec.agent.resources.limits",), Direction.ADDED)),
                RANGE,
            ),
        ),
        # kubernetes plugin/pkg/admission/{serviceaccount,priority,runtimeclass}
        (
            rf'serviceaccount "{NAME}" not found',
            _named("create ServiceAccount {} in this namespace", "serviceAccountName"),
        ),
        (rf"no PriorityClass with name {NAME} was found", _named("create PriorityClass {}", "priorityClassName")),
        (rf'RuntimeClass "{NAME}" not found', _named("create RuntimeClass {}", "runtimeClassName")),
        # k8s.io/pod-security-admission
        (
            r"violates PodSecurity",
            (
                Action(
                    "lower the level in the label pod-security.kubernetes.io/enforce of the namespace or, if another "
                    "program adds to the pods what the message names, correct that program"
                ),
            ),
        ),
    )
)
"""What a user can do, by a part of the error message. `{}` is the name in it."""


def remedy(text: str) -> Remedy:
    """What a user can do about an error message; nothing if that depends on what else the message contains."""
    if LACKS_METADATA.search(text):
        return METADATA
    for pattern, actions in REMEDIES:
        if match := pattern.search(text):
            return tuple(action.naming(*match.groups()) for action in actions)
    return NONE
