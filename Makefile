# Every target can be repeated at any time. `make help` lists them. Recipes of more than five lines are commands of
# tools/project: `PYTHONPATH=tools python3 -m project --help`.

# Set by the user, on the command line or in the environment, and not by a default below.
given = $(filter command environment,$(firstword $(origin $(1))))
VERSION ?= $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

IMAGE_BASE := localhost/memcached-operator/memcached-operator
# The operator's image. One without a registry, such as IMG=operator:dev, is of this machine, and loaded into its cluster.
GIVEN_IMG := $(if $(call given,IMG),$(IMG))
IMG ?= $(IMAGE_BASE):$(VERSION)
override IMG := $(if $(findstring /,$(IMG)),,localhost/)$(IMG)
# The image of the agents in the pods of caches: the name of IMG with the suffix -agent, and its tag.
IMG_TAG = $(patsubst %,:%,$(word 2,$(subst :, ,$(notdir $(IMG)))))
GIVEN_AGENT_IMG := $(if $(call given,AGENT_IMG),$(AGENT_IMG))
override AGENT_IMG = $(if $(GIVEN_AGENT_IMG),$(if $(findstring /,$(GIVEN_AGENT_IMG)),,localhost/)$(GIVEN_AGENT_IMG),$(if $(findstring @,$(IMG)),$(error IMG is a digest: set AGENT_IMG too),$(patsubst %$(IMG_TAG),%,$(IMG))-agent$(IMG_TAG)))
# BASE_IMAGE and BUILD_IMAGE: their base images, by default those of the Dockerfile, or of the local cluster.
# What `make deploy` applies: config/default (own certificates) or another directory of config/overlays.
OVERLAY ?= config/default
# The Python that makes .venv, 3.11 or newer.
PYTHON3 ?= python3
# Where `make run` listens, on loopback.
METRICS_PORT ?= 8383
PROBES_PORT ?= 8081

SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

VENV := .venv
PYTHON := $(VENV)/bin/python
# The commands below need no .venv if they run with PYTHON3.
TOOLS := PYTHONPATH=tools $(PYTHON3) -m
VENV_TOOLS := PYTHONPATH=tools $(PYTHON) -m
PROJECT := $(TOOLS) project
CLUSTER_TOOL := $(TOOLS) cluster
BUNDLE := $(VENV_TOOLS) bundle
CHART := $(VENV_TOOLS) chart
# What reads tests or measures imports from these folders.
ALL_TOOLS := PYTHONPATH=measure:tests:tools $(PYTHON) -m
PAGES := $(ALL_TOOLS) pages
IMAGES = --image="$(IMG)" --agent-image="$(AGENT_IMG)"
IMAGE_OPTIONS = $(IMAGES) --build-arg=BASE_IMAGE="$(BASE_IMAGE)" --build-arg=BUILD_IMAGE="$(BUILD_IMAGE)"

##@ General
.PHONY: help demo demo-plan clean
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "\nUsage:\n  make \033[36m<target>\033[0m [VARIABLE=value …]\n"} \
	  /^[a-zA-Z_0-9-]+:.*?##/ { printf "  \033[36m%-17s\033[0m %s\n", $$1, $$2 } \
	  /^\$$\(call row,.*##/ { split($$1, row, ","); sub(/.*## /, ""); printf "  \033[36m%-17s\033[0m  %s\n", "test-" row[2], $$0 } \
	  /^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) }' $(MAKEFILE_LIST)
	@printf '\nVariables:\n  IMG=%s\n  OVERLAY=%s\n  KUBECONFIG=%s\n' '$(IMG)' '$(OVERLAY)' \
	  '$(or $(KUBECONFIG),(not set: the project starts its own cluster when needed))'

demo: demo-plan venv ## Run the commands of docs/try.md.
	@$(VENV_TOOLS) project demo $(IMAGE_OPTIONS) --overlay="$(OVERLAY)"
demo-plan:
	@$(PROJECT) demo --announce $(IMAGE_OPTIONS) --overlay="$(OVERLAY)"

clean: ## Remove what builds and tests leave in the tree.
	@rm -rf build .coverage .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

##@ Development
.PHONY: venv lock generate manifests pages fmt run
venv: ## Make .venv from requirements/dev.txt (locked with hashes).
	@command -v $(PYTHON3) >/dev/null || { echo "$(PYTHON3) is missing: install Python 3.11 or newer, or name one," \
	  "for example make venv PYTHON3=python3.13" >&2; exit 1; }
	@$(TOOLS) project.venv $(VENV)

lock: venv ## Write requirements/*.txt after a change of the dependencies in pyproject.toml.
	@compile="$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header"; \
	$$compile pyproject.toml -o requirements/runtime.txt >/dev/null; \
	$$compile --group dev -c requirements/runtime.txt pyproject.toml -o requirements/dev.txt >/dev/null; \
	$$compile --group clients -o requirements/clients.txt >/dev/null; \
	$$compile --group plugin -c requirements/dev.txt -o requirements/plugin.txt >/dev/null

generate: manifests pages bundle catalog build-installer chart ## Write all generated files.
# Only the CRDs, roles and webhook configurations.
manifests: venv
	@$(VENV_TOOLS) crds manifests
pages: venv
	@$(VENV_TOOLS) crds docs
	@$(VENV_TOOLS) dashboards
	@$(PAGES)

fmt: venv ## Format the code and fix what ruff can fix.
	@$(VENV)/bin/ruff check --quiet --fix-only .
	@$(VENV)/bin/ruff format --quiet .

run: venv install ## Run the controller in this shell: no leader election, no webhooks.
	@$(VENV_TOOLS) project run --metrics-port=$(METRICS_PORT) --probes-port=$(PROBES_PORT)

##@ Check
.PHONY: check format lint types imports generated workflows audit bundle-check
# Each uses one processor, so they run side by side.
CHECKS := types generated prose imports workflows lint format
check: venv ## Run all checks that need no cluster.
	@printf '%s\n' $(CHECKS) | xargs -P "$$(nproc)" -n 1 $(MAKE) --no-print-directory
	@echo "All checks passed."

format: venv
	@$(VENV)/bin/ruff format --check --quiet . || { echo "Not formatted: run make fmt." >&2; exit 1; }
lint: venv
	@$(VENV)/bin/ruff check --quiet .
types: venv
	@$(VENV)/bin/basedpyright
imports: venv
	@out=$$(PYTHONPATH=plugin $(VENV)/bin/lint-imports --no-logo) || { echo "$$out"; exit 1; }
	@out=$$(PYTHONPATH=measure:tests:tools $(VENV)/bin/lint-imports --no-logo --config tools/.importlinter) || { echo "$$out"; exit 1; }
generated: venv
	@$(VENV_TOOLS) crds manifests --check && $(VENV_TOOLS) crds docs --check && $(VENV_TOOLS) dashboards --check && $(PAGES) --check
	@$(PROJECT) render config/manifests | $(BUNDLE) generate $(RELEASE) --check
	@$(BUNDLE) catalog --check
	@$(PROJECT) render config/default | $(BUNDLE) installer $(RELEASE_OF) --check
	@$(CHART) generate $(RELEASE_OF) --check

audit: venv ## Report known vulnerabilities of locked Python packages; fails without access to the data of PyPI.
	@$(VENV)/bin/pip-audit --strict --require-hashes --disable-pip --progress-spinner=off $(addprefix -r ,$(wildcard requirements/*.txt))

# PREVIOUS: directories with the bundle/ of releases that upgrade to this one. Stored objects must stay valid.
bundle-check: venv
	@$(BUNDLE) compatible $(or $(PREVIOUS),$(error set PREVIOUS=dir, a directory with the bundle/ of an earlier release))

# actionlint runs without shellcheck and pyflakes, which are not on every machine.
WORKFLOWS ?= .github/workflows/*.yaml
workflows:
	@linter="$$($(CLUSTER_TOOL) bin actionlint)/actionlint"; "$$linter" -shellcheck= -pyflakes= $(WORKFLOWS)

##@ Build and deployment
.PHONY: docker-build docker-push install uninstall deploy undeploy build-installer
docker-build: ## Build the images IMG and AGENT_IMG with docker, podman or buildah.
	@$(PROJECT) build $(IMAGE_OPTIONS)

docker-push: ## Push IMG and AGENT_IMG to their registry, or load them into the local cluster if they have none.
	@$(PROJECT) push IMG "$(IMG)" --into-cluster
	@$(PROJECT) push AGENT_IMG "$(AGENT_IMG)" --into-cluster

install: ## Install the CRDs.
	@$(PROJECT) install
uninstall: ## Remove the CRDs, and with them every Memcached, MemcachedProxy and AppService.
	@$(PROJECT) uninstall
deploy: ## Deploy IMG with OVERLAY and wait until it is ready.
	@$(PROJECT) deploy $(IMAGES) --overlay="$(OVERLAY)"
undeploy: ## Remove the operator, the CRDs and with them every Memcached, MemcachedProxy and AppService.
	@$(PROJECT) undeploy --overlay="$(OVERLAY)"
build-installer: venv ## Write dist/install.yaml, for clusters without OLM, with IMG.
	@$(PROJECT) render config/default | $(BUNDLE) installer $(RELEASE_OF)

.PHONY: chart chart-package
chart: venv ## Write charts/, the Helm chart, with IMG; `make chart-package` packs it into dist/.
	@$(CHART) generate $(RELEASE_OF)
chart-package: venv
	@$(CHART) package

include tests/tests.mk tools/bundle/olm.mk tools/release/release.mk tools/plugin/plugin.mk tools/pages/site/site.mk
##@ Cluster
.PHONY: cluster cluster-down
cluster: ## Start a real Kubernetes on this machine, building what is missing.
	@$(CLUSTER_TOOL) up

cluster-down: ## Remove the cluster.
	@$(CLUSTER_TOOL) down
