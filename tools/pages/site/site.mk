# The documentation site and the check of its English: a part of the Makefile.
.PHONY: site site-serve site-links prose
# The site needs node and npm. See mkdocs.yml.
site: venv ## Build the documentation site into build/site/html.
	@$(VENV_TOOLS) pages.site build
site-serve: venv ## Serve the documentation site on this machine, and build changed pages again.
	@$(VENV_TOOLS) pages.site serve
# Nightly.
site-links: site
	@$(VENV_TOOLS) pages.site links

# The English and the Markdown of the pages: .vale.ini, and the table pymarkdown in pyproject.toml.
PROSE := README.md CONTRIBUTING.md docs examples
prose: venv
	@linter="$$($(CLUSTER_TOOL) bin vale)/vale"; "$$linter" --no-global --output=line $(PROSE)
	@$(VENV)/bin/pymarkdown scan --recurse --exclude=docs/api.md $(PROSE)
