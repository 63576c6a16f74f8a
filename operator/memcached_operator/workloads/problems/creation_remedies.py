"""The remedies for the errors with which the API server rejects a pod."""

import re
from typing import Final

from memcached_operator.workloads.rules import PodRules

NAME: Final = r"([-.a-z0-9]{1,253})"

LACKS_METADATA: Final = re.compile(
    r"(?is)\bdenied (?:the )?request\b.*?"
    r"(?:\b(?:missing|requires?|required|needs?|provide|must (?:have|set|include|contain))\b.{0,120}?"
    r"\b(?:label|annotation)s?\b|"
    r"\b(?:label|annotation)s?\b.{0,120}?\b(?:missing|(?:is|are) required|must be (?:set|present)|not (?:set|found))\b)"
)
"""A policy or a webhook that denies an object because it lacks a label or an annotation. Each one has its own text."""

QUOTA: Final = re.compile(rf"exceeded quota: {NAME}, requested: (?!count/replicasets)")
"""A quota that has too little left for a pod."""

REMEDIES: Final = tuple(
    (re.compile(pattern), remedy)
    for pattern, remedy in (
        # kubernetes plugin/pkg/admission/resourcequota
        (rf"exceeded quota: {NAME}, requested: count/replicasets\.apps=", "raise ResourceQuota {}"),
        (rf"exceeded quota: {NAME}, requested: (?:count/)?pods=\d+, ", "raise ResourceQuota {}, or lower spec.size"),
        (rf"exceeded quota: {NAME},", "raise ResourceQuota {}, or lower spec.size or spec.resources"),
        (
            rf"failed quota: {NAME}: must specify",
            "set what it names in spec.resources or, for the container agent of a Memcached, in spec.agent.resources; "
            "or create a LimitRange with default values",
        ),
        # kubernetes plugin/pkg/admission/limitranger
        (
            r"m(?:ax|in)imum \S{1,253} usage per (?:Container|Pod) is| limit to request ratio per ",
            "change the LimitRange, or spec.resources or, for the container agent of a Memcached, spec.agent.resources",
        ),
        # kubernetes pkg/apis/core/validation: admission of a kind rejects a request above its own limit
        (
            r"must be less than or equal to \S{1,253} limit of ",
            "a LimitRange of this namespace sets a default limit below the request: set spec.resources.limits or, for "
            "the container agent of a Memcached, spec.agent.resources.limits, or change the LimitRange",
        ),
        # kubernetes plugin/pkg/admission/{serviceaccount,priority,runtimeclass}
        (rf'serviceaccount "{NAME}" not found', "create ServiceAccount {} in this namespace, or correct its name"),
        (rf"no PriorityClass with name {NAME} was found", "create PriorityClass {}, or correct its name"),
        (rf'RuntimeClass "{NAME}" not found', "create RuntimeClass {}, or correct its name"),
        # k8s.io/pod-security-admission
        (
            r"violates PodSecurity",
            "lower the level in the label pod-security.kubernetes.io/enforce of the namespace or, if another program "
            "adds to the pods what the message names, correct that program",
        ),
    )
)
"""What a user can do, by a part of the error message. `{}` is the name in it."""


def remedy(text: str, rules: PodRules, *, surge: bool = False) -> str:
    """What a user can do about an error message; empty if that depends on what else the message contains.

    `surge`: the rejected pod is one more than the desired number, for the time of a rollout.
    """
    if LACKS_METADATA.search(text):
        return (
            f"add what it requires to {rules.metadata}, or change the policy" if rules.metadata else "change the policy"
        )
    known = _known(text)
    return f"{rules.surge}; or {known}" if surge and rules.surge and QUOTA.search(text) else known


def _known(text: str) -> str:
    for pattern, sentence in REMEDIES:
        if match := pattern.search(text):
            return sentence.format(*match.groups())
    return ""
