# OLM's bundle and catalog: a part of the Makefile. See docs/releasing.md.
##@ OLM

# `make bundle` packs the release's table in pyproject.toml. These variables take precedence: DATE, CHANNELS,
# DEFAULT_CHANNEL, REPLACES, SKIPS, SKIP_RANGE. USE_IMAGE_DIGESTS=true writes every image by digest (docs/releasing.md).
BUNDLE_IMG ?= $(IMAGE_BASE)-bundle:v$(VERSION)
CATALOG_IMG ?= $(IMAGE_BASE)-catalog:v$(VERSION)
RELEASE_OF = --version="$(VERSION)" --date="$(DATE)" $(if $(GIVEN_IMG)$(GIVEN_AGENT_IMG),$(IMAGES))
RELEASE = $(RELEASE_OF) --channels="$(CHANNELS)" --default-channel="$(DEFAULT_CHANNEL)" \
  --replaces="$(REPLACES)" --skips="$(SKIPS)" --skip-range="$(SKIP_RANGE)" \
  $(if $(filter true,$(USE_IMAGE_DIGESTS)),--use-image-digests)

.PHONY: bundle bundle-build bundle-push catalog catalog-build catalog-push bundle-validate catalogue-check images-list scorecard olm
bundle: venv ## Write bundle/ and bundle.Dockerfile; `make bundle-build bundle-push` publishes them as BUNDLE_IMG.
	@$(PROJECT) render config/manifests | $(BUNDLE) generate $(RELEASE)
bundle-build:
	@$(CLUSTER_TOOL) image-build bundle.Dockerfile . "$(BUNDLE_IMG)"
bundle-push:
	@$(PROJECT) push BUNDLE_IMG "$(BUNDLE_IMG)"
images-list: venv ## Print every image of the release in bundle/, one per line, for mirrors.
	@$(BUNDLE) images "$(BUNDLE_IMG)" "$(CATALOG_IMG)"

# A bundle that the catalog already contains keeps its image unless BUNDLE_IMG is given.
catalog: venv ## Add BUNDLE_IMG to catalog/; `make catalog-build catalog-push` publishes it as CATALOG_IMG.
	@$(BUNDLE) catalog --bundle-image="$(BUNDLE_IMG)" $(if $(call given,BUNDLE_IMG),,--keep-image)
catalog-build:
	@$(CLUSTER_TOOL) image-build catalog.Dockerfile . "$(CATALOG_IMG)"
catalog-push:
	@$(PROJECT) push CATALOG_IMG "$(CATALOG_IMG)"
bundle-validate: ## Check bundle/ and catalog/ with OLM's own validators.
	@$(TOOLS) olm validate bundle catalog
catalogue-check: venv bundle-validate ## Check what the pipelines of community catalogs check.
	@$(BUNDLE) community
scorecard:
	@programs="$$($(TOOLS) olm programs)"; PATH="$$programs:$$PATH" $(PROJECT) exec operator-sdk scorecard bundle --wait-time=180s

olm: venv docker-build docker-push ## Run OLM on the local cluster and serve this tree's bundle, with IMG, in a catalog.
	@$(VENV_TOOLS) project olm $(IMAGES) -- $(RELEASE)
