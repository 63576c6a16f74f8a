"""The last step, and what the user can do next."""

import os
import shutil
from pathlib import Path

from cluster.paths import cache_dir, state_root
from demo.errors import DemoError
from demo.stage import Stage

COLUMNS = ("SIZE", "READY", "AVAILABLE", "DEGRADED", "PORT", "AGE", "MEMORY", "IMAGE", "REASON", "MESSAGE")
CONDITIONS = '{range .status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\\n"}{end}'


def shows_status(stage: Stage) -> None:
    """The columns of kubectl, and the three conditions."""
    here, target = stage.kubectl.here, f"memcached/{stage.name}"
    missing = missing_columns(stage.show(here("get", target, "-o", "wide")).out)
    if missing:
        raise DemoError(f"kubectl does not show the columns {', '.join(missing)}")
    shown = stage.show(here("get", target, "-o", f"jsonpath={CONDITIONS}")).out
    types = [line.split("=")[0] for line in shown.splitlines()]
    if types != ["Available", "Progressing", "Degraded"]:
        raise DemoError(f"the conditions are {', '.join(types) or 'none'} instead of Available, Progressing, Degraded")


def missing_columns(table: str) -> list[str]:
    """The columns that the heading of a table lacks."""
    heading = table.split("\n", 1)[0].split()
    return [column for column in COLUMNS if column not in heading]


def next_steps(stage: Stage, environ: dict[str, str] | None = None) -> str:
    """What to try next, and how to clean up."""
    namespace, name = stage.kubectl.namespace, stage.name
    env = dict(os.environ) if environ is None else environ
    config, program = env.get("KUBECONFIG", ""), shutil.which("kubectl", path=env.get("PATH")) or ""
    lines = ["Next steps:"]
    lines += [f"  export KUBECONFIG={config}"] if config else []
    lines += [f'  export PATH="$PATH:{Path(program).parent}"'] if Path(program).is_relative_to(cache_dir(env)) else []
    lines += [
        f"  kubectl -n {namespace} edit memcached {name}",
        f"  kubectl -n {namespace} get memcacheds --watch",
        "  kubectl explain memcached.spec     every field; also docs/api.md",
        "Clean up:",
        f"  kubectl delete namespace {namespace}",
        "  make undeploy                      the operator, its CustomResourceDefinitions and every Memcached",
    ]
    lines += ["  make cluster-down                  the cluster itself"] if is_own(config, env) else []
    return "\n".join(lines)


def is_own(config: str, env: dict[str, str]) -> bool:
    """Whether a kubeconfig is that of a cluster `make cluster` started."""
    return bool(config) and Path(config).is_relative_to(state_root(env))
