# Every target can be run again at any time. `make help` lists them.

# What the user names, on the command line or in the environment, as against a default below.
given = $(filter command environment,$(firstword $(origin $(1))))
VERSION ?= $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)

IMAGE_BASE := localhost/memcached-operator/memcached-operator
# The operator's image. One without a registry is this machine's own and goes straight into the local cluster.
GIVEN_IMG := $(if $(call given,IMG),$(IMG))
IMG ?= $(IMAGE_BASE):$(VERSION)
# What is deployed: config/default (own certificates) or config/overlays/certmanager.
OVERLAY ?= config/default
# The Python that .venv is made with, 3.11 or newer.
PYTHON3 ?= python3
# Tests that run at the same time; they mostly wait for pods.
WORKERS ?= 4
# More arguments for pytest, such as ARGS="-k 'scale or drift' -x". With them a suite may have nothing to run (pytest's
# exit code 5), coverage is not checked, and `make test` leaves out the fault gate, which is not run by pytest.
ARGS ?=
pytest = $(PYTHON) -m pytest $(1) $(ARGS) $(2)$(if $(ARGS), || [ $$? = 5 ])

# `IMG=memcached-operator:dev` means what it would mean to docker: an image of this machine.
IMG_HOST := $(if $(findstring /,$(IMG)),$(firstword $(subst /, ,$(IMG))),localhost)
override IMG := $(if $(findstring /,$(IMG)),,localhost/)$(IMG)

SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

NAMESPACE := memcached-operator-system
VENV := .venv
PYTHON := $(VENV)/bin/python
CLUSTER := PYTHONPATH=tools $(PYTHON3) -m cluster
CRDS := PYTHONPATH=tools $(PYTHON) -m crds

# Of a recipe that talks to a cluster: the user's KUBECONFIG, or else our own cluster, started if need be; and kubectl.
use_cluster = if $(CLUSTER) status >/dev/null 2>&1; then last=$$($(CLUSTER) up 2>/dev/null | tail -n 1); \
  else last=$$($(CLUSTER) up | tail -n 1); fi; eval "$$last"; $(use_kubectl)
use_kubectl = command -v kubectl >/dev/null || { PATH="$$PATH:$$($(CLUSTER) bin)"; export PATH; }

# The fault campaigns (docs/reliability.md); a cluster that is given is not used for them.
FAULTS := env -u KUBECONFIG PYTHONPATH=tests:tools $(PYTHON) -m faults
# Of `make test-faults`: names of cases, or patterns.
NAMES ?=

# The parts without input or output, whose tests must reach 95 % of the branches.
PURE := api/*,operator/memcached_operator/*/desired/*,operator/memcached_operator/*/status.py,operator/memcached_operator/reconcile/compare.py,operator/memcached_operator/status/conditions.py,operator/memcached_operator/reconcile/ownership.py,operator/memcached_operator/kube/labels.py,webhooks/memcached_webhooks/review.py,webhooks/memcached_webhooks/admission.py,webhooks/memcached_webhooks/expiry.py,webhooks/memcached_webhooks/warnings.py,webhooks/memcached_webhooks/memcached.py,webhooks/memcached_webhooks/appservice.py

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "\nUsage:\n  make \033[36m<target>\033[0m [VARIABLE=value …]\n"} \
	  /^[a-zA-Z_0-9-]+:.*?##/ { printf "  \033[36m%-17s\033[0m %s\n", $$1, $$2 } \
	  /^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) }' $(MAKEFILE_LIST)
	@printf '\nVariables:\n  IMG=%s\n  OVERLAY=%s\n  KUBECONFIG=%s\n' '$(IMG)' '$(OVERLAY)' \
	  '$(or $(KUBECONFIG),(not set: a cluster of our own, started when needed))'

.PHONY: demo
demo: venv docker-build docker-push deploy ## The whole story on a real cluster, narrated: start here.
	@$(use_cluster); PYTHONPATH=tools $(PYTHON) -m demo

.PHONY: clean
clean: ## Remove what builds and tests leave in the tree.
	@rm -rf build .coverage .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: cluster-down clean ## Also take the local cluster down and remove .venv.
	@rm -rf $(VENV)

##@ Development

# One file per state of the lock and the project: a change of either installs again.
STAMP := $(VENV)/.installed-$(shell cat requirements/dev.txt pyproject.toml | sha256sum | cut -c 1-12)

.PHONY: venv
venv: $(STAMP) ## Build .venv from requirements/dev.txt (locked with hashes).
	@:
$(STAMP):
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON3) is missing or older than 3.11: install a newer Python, or name one: make PYTHON3=python3.13 …" >&2; exit 1; }
	@$(PYTHON3) -c 'import ensurepip, venv' 2>/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || { \
	    echo "Python's venv module is missing: install the package python3-venv and run this again." >&2; exit 1; }; \
	  echo "Installing python3-venv …"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; }
	@echo "Building $(VENV) from requirements/dev.txt (a minute at the first time) …"
	@$(PYTHON3) -m venv $(VENV)
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.installed-* && touch $@

.PHONY: lock
lock: venv ## Write requirements/*.txt again after a change of the dependencies in pyproject.toml.
	@compile="$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header"; \
	$$compile pyproject.toml -o requirements/runtime.txt >/dev/null; \
	$$compile --extra dev -c requirements/runtime.txt pyproject.toml -o requirements/dev.txt >/dev/null

.PHONY: manifests
manifests: venv ## Write the CRDs from the Python types.
	@$(CRDS) manifests

.PHONY: generate
generate: venv ## Write the API reference from the Python types.
	@$(CRDS) docs

.PHONY: fmt
fmt: venv ## Format the code and mend what can be mended.
	@$(VENV)/bin/ruff check --quiet --fix-only .
	@$(VENV)/bin/ruff format --quiet .

# Where `make run` listens, on loopback.
METRICS_PORT ?= 8383
PROBES_PORT ?= 8081

.PHONY: run
run: venv install ## Run the controller from this shell: no leader election, no webhooks.
	@$(use_cluster); \
	export RELATED_IMAGE_MEMCACHED="$$(sed -n 's/^ *value: \(.*:.*\)$$/\1/p' config/base/related_image_patch.yaml)"; \
	exec $(PYTHON) -m memcached_operator \
	  --metrics-bind-address=127.0.0.1:$(METRICS_PORT) --health-probe-bind-address=127.0.0.1:$(PROBES_PORT)

##@ Test

.PHONY: check
check: format lint types imports generated workflows ## All checks that need no cluster.
	@echo "All checks passed."

.PHONY: format
format: venv ## Check the format.
	@$(VENV)/bin/ruff format --check --quiet . || { echo "Not formatted: run make fmt." >&2; exit 1; }

.PHONY: lint
lint: venv ## Lint.
	@$(VENV)/bin/ruff check --quiet .

.PHONY: types
types: venv ## Check the types (strict).
	@$(VENV)/bin/basedpyright

.PHONY: imports
imports: venv ## Check who imports whom (.importlinter).
	@out=$$($(VENV)/bin/lint-imports --no-logo) || { echo "$$out"; exit 1; }

.PHONY: generated
generated: venv ## Check that the generated files are up to date.
	@$(CRDS) manifests --check && $(CRDS) docs --check
	@$(use_kubectl); kubectl kustomize config/manifests | $(BUNDLE) generate $(RELEASE) --check
	@$(BUNDLE) catalog --check
	@$(use_kubectl); kubectl kustomize config/default | $(BUNDLE) installer $(RELEASE_OF) --check

# What `make workflows` lints, without shellcheck and pyflakes, which not every machine has.
WORKFLOWS ?= .github/workflows/*.yaml

.PHONY: workflows
workflows: ## Lint the GitHub workflows.
	@linter="$$($(CLUSTER) bin actionlint)/actionlint"; "$$linter" -shellcheck= -pyflakes= $(WORKFLOWS)

.PHONY: test
test: venv docker-build docker-push deploy coverage test-integration test-e2e $(if $(ARGS),,test-faults-gate) $(if $(KUBECONFIG),,test-olm) ## All tests; sets up what they need.

.PHONY: test-unit
test-unit: venv ## The tests that need no cluster.
	@$(call pytest,,tests/unit)

.PHONY: test-integration
test-integration: venv ## The tests that need an API server: with the oldest and the newest that are tested.
	@$(use_cluster); $(call pytest,-n $(WORKERS),tests/integration)

.PHONY: test-e2e
test-e2e: venv docker-build docker-push deploy ## The tests of the deployed operator, with real pods.
	@$(use_cluster); $(call pytest,-n $(WORKERS) -m "not disruptive",tests/e2e)
	@$(use_cluster); $(call pytest,-m disruptive,tests/e2e)

.PHONY: test-olm
test-olm: venv ## The tests with the real OLM and real pods, in a cluster of their own that ends with them.
	@export CLUSTER_NAME="$${CLUSTER_NAME:-memcached-operator}-olm"; trap '$(CLUSTER) down' EXIT; \
	$(MAKE) --no-print-directory IMG=$(IMG) docker-build docker-push; \
	$(use_cluster); $(OLM) up; export IMG=$(IMG); $(call pytest,,tests/olm)

.PHONY: test-faults
test-faults: venv ## The fault campaigns, on a control plane of their own: all, or NAMES="T4/* T7/*".
	@$(FAULTS) $(NAMES)

.PHONY: test-faults-gate
test-faults-gate: venv ## Of each fault campaign a few cases, within 5 minutes.
	@$(FAULTS) --gate

.PHONY: test-soak
test-soak: venv ## 200 objects, changes and faults for 40 minutes: nothing may pile up.
	@$(FAULTS) T13/soak

.PHONY: coverage
coverage: venv ## Check that the unit tests reach 95 % of the branches of the pure code.
	@$(call pytest,-q -n $(WORKERS) --cov=memcached_api --cov=memcached_operator --cov=memcached_process --cov=memcached_webhooks --cov-branch --cov-report=,tests/unit)
	$(if $(ARGS),,@$(VENV)/bin/coverage report --include='$(PURE)' --fail-under=95)

.PHONY: bench
bench: venv ## Measure how fast it is, on control planes of its own; writes the tables of docs/performance.md (10 minutes).
	@PYTHONPATH=tests:tools $(PYTHON) -m bench $(ARGS)

##@ Build

# For our own cluster, which has no registry, the base is the image that the cluster is made with.
BASE_IMAGE ?= $(if $(filter localhost,$(IMG_HOST)),localhost/memcached-operator/base:trixie)
BUILD_IMAGE ?= $(if $(filter localhost,$(IMG_HOST)),localhost/memcached-operator/build:trixie)
build_args = $(foreach name,BASE_IMAGE BUILD_IMAGE,$(if $($(name)),--build-arg $(name)=$($(name))))
# The command line of docker, podman or buildah, whichever image-build took.
tool = PYTHONPATH=tools $(PYTHON3) -c 'import sys; from cluster.images.build import choose_tool; print(*choose_tool().command(*sys.argv[1:]))'

.PHONY: docker-build
docker-build: ## Build the image IMG with docker, podman or buildah.
	@$(if $(filter localhost,$(IMG_HOST)),$(use_cluster);) $(CLUSTER) image-build Dockerfile . $(IMG) $(build_args)

.PHONY: docker-push
docker-push: ## Push IMG to its registry, or into the local cluster if it has none.
ifeq (localhost,$(IMG_HOST))
	@$(use_cluster); $(CLUSTER) load $(IMG)
else
	@push=$$($(tool) push $(IMG)); $$push
endif

##@ OLM

# What `make bundle` packs is the release's table in pyproject.toml; these say otherwise: see docs/releasing.md.
DATE ?=
CHANNELS ?=
DEFAULT_CHANNEL ?=
REPLACES ?=
SKIPS ?=
SKIP_RANGE ?=
# true: every image by the digest that its registry tells (with skopeo, crane or docker).
USE_IMAGE_DIGESTS ?= false
BUNDLE_IMG ?= $(IMAGE_BASE)-bundle:v$(VERSION)
CATALOG_IMG ?= $(IMAGE_BASE)-catalog:v$(VERSION)

BUNDLE := PYTHONPATH=tools $(PYTHON) -m bundle
OLM := PYTHONPATH=tools $(PYTHON3) -m olm
RELEASE_OF = --version="$(VERSION)" --date="$(DATE)" $(if $(GIVEN_IMG),--image="$(IMG)")
RELEASE = $(RELEASE_OF) --channels="$(CHANNELS)" --default-channel="$(DEFAULT_CHANNEL)" \
  --replaces="$(REPLACES)" --skips="$(SKIPS)" --skip-range="$(SKIP_RANGE)" \
  $(if $(filter true,$(USE_IMAGE_DIGESTS)),--use-image-digests)

# Push the image that a variable names.
push = case "$($(1))" in localhost/*) echo "$(1)=$($(1)) names no registry to push to: name one, such as" \
  "$(1)=registry.example.com/$(notdir $($(1)))." >&2; exit 1;; esac; push=$$($(tool) push $($(1))); $$push

.PHONY: bundle
bundle: venv ## Write bundle/ and bundle.Dockerfile from config/manifests.
	@$(use_kubectl); kubectl kustomize config/manifests | $(BUNDLE) generate $(RELEASE)

# Of `make bundle-check`: directories that contain the bundle/ of releases that upgrade to this one.
PREVIOUS ?=

.PHONY: bundle-check
bundle-check: venv ## Check that objects of earlier releases keep working with the new CRDs; PREVIOUS=dir: their bundles.
	@$(BUNDLE) compatible $(PREVIOUS)

.PHONY: bundle-build
bundle-build: ## Build the bundle's image BUNDLE_IMG.
	@$(CLUSTER) image-build bundle.Dockerfile . $(BUNDLE_IMG)

.PHONY: bundle-push
bundle-push: ## Push BUNDLE_IMG to its registry.
	@$(call push,BUNDLE_IMG)

.PHONY: catalog
catalog: venv ## Add the bundle to catalog/, as BUNDLE_IMG; one that is in it keeps its image unless BUNDLE_IMG is given.
	@$(BUNDLE) catalog --bundle-image="$(BUNDLE_IMG)" $(if $(call given,BUNDLE_IMG),,--keep-image)

.PHONY: catalog-build
catalog-build: ## Build the catalogue's image CATALOG_IMG.
	@$(CLUSTER) image-build catalog.Dockerfile . $(CATALOG_IMG)

.PHONY: catalog-push
catalog-push: ## Push CATALOG_IMG to its registry.
	@$(call push,CATALOG_IMG)

.PHONY: scorecard
scorecard: ## Run operator-sdk's scorecard on bundle/; the cluster pulls the image of its tests.
	@$(use_cluster); PATH="$$($(OLM) programs):$$PATH" operator-sdk scorecard bundle --wait-time=180s

.PHONY: bundle-validate
bundle-validate: ## Run OLM's own validators, built if needed, on bundle/ and catalog/.
	@$(OLM) validate bundle catalog

.PHONY: olm
olm: venv docker-build docker-push ## Have OLM run on the local cluster, and serve this tree's bundle, with IMG, in a catalogue.
	@$(use_cluster); $(OLM) up; manifests=$$(kubectl kustomize config/manifests); rm -rf build/olm; \
	$(BUNDLE) generate $(RELEASE) --image="$(IMG)" --output=build/olm <<< "$$manifests" >/dev/null; \
	$(BUNDLE) catalog --inline --output=build/olm build/olm >/dev/null; \
	$(OLM) serve build/olm/catalog --name $(LOCAL_CATALOG); \
	$(BUNDLE) subscription --source $(LOCAL_CATALOG) --bundle build/olm > build/olm/subscription.yaml; \
	echo "Have OLM install it:"; echo "  export KUBECONFIG=$$KUBECONFIG"; \
	echo "  kubectl apply -f build/olm/subscription.yaml"; \
	echo "  kubectl -n $(NAMESPACE) get clusterserviceversions   # until it says Succeeded"

# Not the name that make olm-demo serves its two releases under.
LOCAL_CATALOG := memcached-operator-local

.PHONY: build-installer
build-installer: venv ## Write dist/install.yaml, for clusters without OLM, with IMG.
	@$(use_kubectl); kubectl kustomize config/default | $(BUNDLE) installer $(RELEASE_OF)

.PHONY: olm-demo
olm-demo: venv docker-build docker-push ## The story through OLM, narrated: Subscription, a cache, an upgrade, removal.
	@$(use_cluster); $(OLM) up; manifests=$$(kubectl kustomize config/manifests); rm -rf build/olm-demo; \
	tell="env PYTHONPATH=tools $(PYTHON) -m olm_demo"; read -r now next <<< "$$($$tell --releases)"; \
	pack() { $(BUNDLE) generate --image="$(IMG)" --date="$$(date -u +%F)" --channels=stable --output="build/olm-demo/$$1" \
	  --version="$$@" <<< "$$manifests" >/dev/null; }; \
	pack "$$now"; pack "$$next" --replaces="memcached-operator.v$$now"; \
	$(BUNDLE) catalog --inline --output=build/olm-demo "build/olm-demo/$$now" "build/olm-demo/$$next" >/dev/null; \
	$(OLM) serve build/olm-demo/catalog --name memcached-operator; $$tell

##@ Deployment

# What is deployed: OVERLAY with IMG in it. An image of this machine keeps its name when it changes, so its id is written
# beside it: pods are replaced when it is another, and only then.
image_id = $(if $(filter localhost,$(IMG_HOST)),$$(list=$$($(tool) images --no-trunc --quiet $(IMG)); $$list))
define overlay
resources:
- ../../$(OVERLAY)
patches:
- target:
    kind: Deployment
  patch: |-
    - op: replace
      path: /spec/template/spec/containers/0/image
      value: $(IMG)
    - op: add
      path: /spec/template/metadata/annotations/memcached-operator.example.com~1image-id
      value: "%s"
endef
export overlay

# Asks as a user would, but stores nothing.
SAMPLE := config/samples/cache_v1_memcached.yaml
admitted = kubectl apply --server-side --force-conflicts --field-manager=deploy-check --dry-run=server -n default -f $(SAMPLE)

.PHONY: install
install: ## Install the CRDs.
	@$(use_cluster); kubectl apply --server-side --force-conflicts -k config/crd; \
	kubectl wait --for=condition=Established --timeout=60s -f config/crd/bases >/dev/null

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them every Memcached and AppService of the cluster.
	@$(if_cluster); kubectl delete --ignore-not-found --timeout=120s -k config/crd

.PHONY: deploy
deploy: ## Deploy IMG and wait until it serves.
	@$(use_cluster); mkdir -p build/deploy; printf "$$overlay\n" "$(image_id)" > build/deploy/kustomization.yaml; \
	applied=$$(kubectl kustomize build/deploy | kubectl apply --server-side --force-conflicts -f -); \
	echo "Applied $$(wc -l <<< "$$applied") objects of $(OVERLAY) with $(IMG)."; \
	for name in controller-manager webhook; do \
	  kubectl -n $(NAMESPACE) rollout status --timeout=180s deployment/memcached-operator-$$name || { \
	    kubectl -n $(NAMESPACE) get pods; kubectl -n $(NAMESPACE) get events --field-selector type=Warning | tail -n 5; \
	    kubectl -n $(NAMESPACE) logs --tail=5 deployment/memcached-operator-$$name || true; \
	    echo "memcached-operator-$$name is not up after 3 minutes: the pods, events and logs above say why." \
	      "Where the image cannot be pulled: make docker-build docker-push." >&2; exit 1; }; \
	done; \
	for try in {1..30}; do ! answer=$$($(admitted) 2>&1) || { echo "Deployed: admission answers."; exit 0; }; sleep 1; done; \
	echo "The operator runs, but admission does not answer: $$answer" >&2; exit 1

.PHONY: undeploy
undeploy: ## Remove the operator, the CRDs and with them every Memcached and AppService of the cluster.
	@$(if_cluster); kubectl kustomize $(OVERLAY) | kubectl delete --ignore-not-found --timeout=120s -f - || { \
	  echo "Something did not go within 2 minutes: see above. It is safe to run this again." >&2; exit 1; }

##@ Cluster

# Of a recipe that has nothing to do where no cluster runs.
if_cluster = if [ -z "$${KUBECONFIG:-}" ]; then info=$$($(CLUSTER) info 2>/dev/null) || { echo "No cluster is running: nothing to remove."; exit 0; }; \
  KUBECONFIG=$$(sed -n 's/.*"kubeconfig": "\(.*\)".*/\1/p' <<< "$$info"); export KUBECONFIG; fi; $(use_kubectl)

.PHONY: cluster
cluster: ## Start a real Kubernetes on this machine, building what is missing.
	@$(CLUSTER) up

.PHONY: cluster-status
cluster-status: ## Show the cluster's components.
	@$(CLUSTER) status

.PHONY: cluster-down
cluster-down: ## Take the cluster down; nothing of it stays.
	@$(CLUSTER) down
