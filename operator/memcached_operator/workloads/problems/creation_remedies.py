"""The remedies for the errors with which the API server rejects a pod."""

import re
from typing import Final

NAME: Final = r"([-.a-z0-9]{1,253})"

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


def remedy(text: str) -> str:
    """What a user can do about an error message; empty if that depends on what else the message contains."""
    for pattern, sentence in REMEDIES:
        if match := pattern.search(text):
            return sentence.format(*match.groups())
    return ""
