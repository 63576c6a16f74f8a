"""Commands in sentences, complete enough to be pasted into the shell in which the plugin ran."""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Shell:
    """The user's shell. `options`: those with which kubectl reaches the cluster, such as `--context=prod`."""

    namespace: str
    options: tuple[str, ...] = ()

    def kubectl(self, *words: str) -> str:
        """A command of kubectl, in backticks."""
        return self._command(*words)

    def plugin(self, command: str, name: str) -> str:
        """A command of the plugin for a Memcached, in backticks."""
        return self._command("memcached", command, name)

    def cache(self, command: str, name: str, to: str = "") -> str:
        """A command of the plugin for a Memcached, without backticks. `to`: the image of `upgrade --to`."""
        words = ["kubectl", "memcached", command, "-n", self.namespace, name, *(["--to", to] if to else [])]
        return shlex.join([*words, *self.options])

    def _command(self, *words: str) -> str:
        # After the words: kubectl accepts no option before the name of a plugin.
        options = ["-n", self.namespace, *map(shlex.quote, self.options)]
        return f"`kubectl {' '.join([*words, *options])}`"
