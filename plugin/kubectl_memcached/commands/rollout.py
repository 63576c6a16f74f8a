"""`restart`, `pause` and `resume`: fields of `spec.rollout`."""

import json
from datetime import UTC, datetime
from typing import Any

import click

from kubectl_memcached.cluster.caches import get
from kubectl_memcached.cluster.kubectl import Kubectl, parsed
from kubectl_memcached.commands.options import cluster_command, name_argument
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.conditions import rollout
from kubectl_memcached.model.objects import RESOURCE, Object, text


@click.command()
@name_argument
@cluster_command
def restart(kubectl: Kubectl, name: str) -> None:
    """Replace all pods, with the limits in spec.rollout. Their items are lost."""
    cr = _change(kubectl, name, {"restartedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")})
    click.echo(f"Memcached {name}: the operator replaces its pods. Watch it: kubectl memcached status {name}")
    if rollout(cr).get("paused") is True:
        click.echo(f"The rollout is paused: the restart begins after kubectl memcached resume {name}")


@click.command()
@name_argument
@cluster_command
def pause(kubectl: Kubectl, name: str) -> None:
    """Hold changes that replace or restart pods until `resume`."""
    _change(kubectl, name, {"paused": True})
    click.echo(f"Memcached {name}: the rollout is paused. Continue it: kubectl memcached resume {name}")


@click.command()
@name_argument
@cluster_command
def resume(kubectl: Kubectl, name: str) -> None:
    """Continue a rollout that was paused."""
    if rollout(get(kubectl, name)).get("paused") is not True:
        click.echo(f"Memcached {name}: the rollout was not paused.")
        return
    _change(kubectl, name, {"paused": False})
    click.echo(f"Memcached {name}: the rollout continues. Watch it: kubectl memcached status {name}")


def _change(kubectl: Kubectl, name: str, values: dict[str, Any]) -> Object:
    """Set fields of `spec.rollout`, and return the object. Raises PluginError if the cluster does not know them.

    An API server drops fields that its CustomResourceDefinition does not have.
    """
    what = f"change Memcached {name}"
    patch = json.dumps({"spec": {"rollout": values}})
    output = kubectl.run(what, "patch", RESOURCE, name, "--type=merge", f"--patch={patch}", "-o=json")
    cr = parsed(output, what)
    missing = [field for field, value in values.items() if rollout(cr).get(field) != value]
    if missing:
        raise PluginError(
            f"This cluster's Memcacheds have no field spec.rollout.{missing[0]}: upgrade the operator. "
            f"{text(cr, 'metadata', 'namespace')}/{name} is unchanged.",
            ExitCode.MISSING,
        )
    return cr
