"""Remedies for what the scheduler says about a pod that no node takes."""

from typing import Final

REMEDIES: Final = {
    "were unschedulable": "uncordon a node, or add one",
    "Insufficient cpu": "lower spec.resources.requests.cpu, or add a node",
    "Insufficient memory": "lower spec.cache.memory or spec.resources.requests.memory, or add a node",
    "untolerated taint": (
        "repair or uncordon the node if the taint begins with node.kubernetes.io, otherwise add "
        "spec.podTemplate.spec.tolerations, or remove the taint"
    ),
    "node affinity/selector": "correct spec.podTemplate.spec.nodeSelector or affinity, or label a node",
    "constraints (missing required label)": (
        "label the nodes with the topologyKey of spec.podTemplate.spec.topologySpreadConstraints, or correct it"
    ),
    "topology spread constraints": "relax spec.podTemplate.spec.topologySpreadConstraints, or add a node",
    "match pod anti-affinity": "relax spec.podTemplate.spec.affinity, or add a node",
    "existing pods anti-affinity": (
        "add a node, or set spec.rollout.maxUnavailable to 100%, which replaces all pods at once: their items are lost"
    ),
    "Too many pods": "add a node",
}
"""The action for each part of the scheduler's messages, which are the same in Kubernetes 1.30 to 1.37.

A part that contains another one comes before it."""


def remedy(message: str) -> str:
    """The actions for a message of the scheduler, as the end of a sentence. Empty if none is known."""
    actions: list[str] = []
    for part, action in REMEDIES.items():
        if part in message:
            actions.append(action)
            message = message.replace(part, "")
    return f". {_capitalized('; or '.join(actions))}" if actions else ""


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
