# Targets of releases: a part of the Makefile.
##@ Release

# docs/releasing.md. DATE: today. IMG, AGENT_IMG: without tag. BASE_IMAGE: by digest. KEY: cosign's key, keyless without it.
# GROUP, APP_GROUP: other API groups than those of the tree; chosen before the first installation.
.PHONY: release release-build release-publish release-verify release-programs release-notes group
RELEASE_TOOL := $(VENV_TOOLS) release
PUBLISHED = --version="$(VERSION)" --key="$(KEY)" --registry="$(REGISTRY)" $(if $(filter true,$(PLAIN_HTTP)),--plain-http)
release: venv ## Build release VERSION into build/release/VERSION; DRY_RUN=false also commits its changes and tags them.
	@$(RELEASE_TOOL) make --version="$(VERSION)" --date="$(DATE)" --image="$(GIVEN_IMG)" --agent-image="$(GIVEN_AGENT_IMG)" \
	  --group="$(GROUP)" --app-group="$(APP_GROUP)" --base-image="$(BASE_IMAGE)" $(if $(filter false,$(DRY_RUN)),--commit)
release-build: venv # Of the tag that is checked out.
	@$(RELEASE_TOOL) build --version="$(VERSION)" --base-image="$(BASE_IMAGE)" --builder="$(BUILDER)"
release-publish: venv ## Push the images of build/release/VERSION, and sign everything.
	@$(RELEASE_TOOL) publish $(PUBLISHED)
release-verify: venv ## Verify the files and the published images of build/release/VERSION.
	@$(RELEASE_TOOL) verify $(PUBLISHED) --identity="$${IDENTITY:-}" --issuer="$(ISSUER)"

release-programs: venv
	@$(RELEASE_TOOL) programs
release-notes: venv
	@$(RELEASE_TOOL) notes --version="$(VERSION)"
GROUP_TREE ?= build/group
group: venv ## Write this tree with the API groups GROUP and APP_GROUP into build/group.
	@$(RELEASE_TOOL) group --group="$(GROUP)" --app-group="$(APP_GROUP)" --output="$(GROUP_TREE)"
