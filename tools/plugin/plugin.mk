# The kubectl plugin: a part of the Makefile. See docs/plugin.md.
.PHONY: plugin
plugin: venv ## Pack the kubectl plugin into build/plugin: kubectl-memcached, its archive, krew's manifest.
	@$(VENV_TOOLS) plugin package
