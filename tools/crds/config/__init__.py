"""The files in config/ that follow from the registered kinds."""

from collections.abc import Sequence
from pathlib import Path

from alerts import files as alert_files
from crds.config.alerts import with_alerts
from crds.config.component import component
from crds.config.policy import with_kinds
from crds.config.roles import manager_role, user_roles
from crds.config.webhooks import configurations
from crds.crd import definition
from crds.registered import Registered
from project.yaml_text import yaml_text

COMMAND = "make manifests"
CONTROLLERS = "operator/memcached_operator/kinds.py"
POLICY = "config/admission-policies/children.yaml"
MONITORING = "config/admission-policies/monitoring.yaml"
SAMPLES = "config/samples"
ONLY = ("memcached",)
"""The kinds, in lower case, for whose API group there is a component that leaves out all other groups."""


def files(registered: Sequence[Registered], root: Path) -> dict[str, str]:
    """Their text, by path below `root`, which contains the policy and the samples."""
    kinds = [each.kind for each in registered]
    crds = {f"bases/{kind.group}_{kind.plural}.yaml": yaml_text(COMMAND, definition(kind)) for kind in kinds}
    policy = (root / POLICY).read_text(encoding="utf-8")
    samples = sorted(path.name for path in (root / SAMPLES).glob("*_v*.yaml"))
    return {
        **{f"config/crd/{name}": text for name, text in crds.items()},
        "config/crd/kustomization.yaml": yaml_text(COMMAND, {"resources": list(crds)}),
        "config/webhook/manifests.yaml": yaml_text(COMMAND, *configurations(kinds)),
        "config/rbac/role.yaml": yaml_text(COMMAND, manager_role(registered), source=CONTROLLERS),
        "config/rbac/user_roles.yaml": yaml_text(COMMAND, *(role for kind in kinds for role in user_roles(kind))),
        POLICY: with_kinds(policy, registered),
        MONITORING: with_alerts((root / MONITORING).read_text(encoding="utf-8")),
        **{f"config/components/{name}-only/kustomization.yaml": component(registered, name, policy) for name in ONLY},
        **alert_files.files(COMMAND),
        f"{SAMPLES}/kustomization.yaml": yaml_text(COMMAND, {"resources": samples}, source="this directory"),
    }
