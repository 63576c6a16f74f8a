# The documentation site: a part of the Makefile. It needs node and npm. See mkdocs.yml.
.PHONY: site site-serve site-links
site: venv ## Build the documentation site into build/site/html.
	@$(VENV_TOOLS) pages.site build
site-serve: venv ## Serve the documentation site on this machine, and build changed pages again.
	@$(VENV_TOOLS) pages.site serve
# Nightly.
site-links: site
	@$(VENV_TOOLS) pages.site links
