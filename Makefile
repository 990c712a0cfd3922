# `make demo` shows tieredctl at work, `make test` checks all of it. Each first sets up what it needs in .venv, from
# the locks, once: the second run starts immediately.

MAKEFLAGS += --no-print-directory
.NOTPARALLEL:
# Every process of a test would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin

# The first Python on the PATH that is new enough.
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c '$(IS_NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)

# Spark 4 needs Java 17.
JAVA_FOR_SPARK = $(shell version=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p'); \
	[ "$${version:-0}" -ge 17 ] && echo "Java $$version")

# Debian keeps the server's programs off the PATH.
POSTGRES_OF_DEBIAN = $(lastword $(wildcard /usr/lib/postgresql/*/bin))

# What is installed with tieredctl: a package for each storage layout, and the Spark jobs.
PLUGINS := $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml))
SPARK := $(patsubst %/pyproject.toml,%,$(wildcard spark/pyproject.toml))
PACKAGES := $(PLUGINS) $(SPARK)
CODE := tieredctl tests website $(PACKAGES) $(patsubst %/,%,$(dir $(wildcard benchmarks/__main__.py)))

PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
# Python compiles what is imported, and keeps it: most of what is installed never is.
INSTALL_LOCKED := $(PIP) install --require-hashes --no-build-isolation --no-compile
UV ?= uv

RUN_TESTS := $(BIN)/python -m pytest -p tests.shares --dist loadscope --no-loadscope-reorder $(if $(CI),-p tests.no_skips)

# Of what is exhaustive `make test` runs one share, chosen by the commit: in time all of it is run.
SHARES := 16
COMMIT := $(shell git rev-parse --short=6 HEAD 2>/dev/null || echo 0)
SHARE_OF_COMMIT := $(shell echo $$((0x$(COMMIT) % $(SHARES) + 1)))/$(SHARES)

# What executors run: everything but PySpark, which a cluster brings along.
ARCHIVE := dist/tieredctl-spark.tar.gz
PACKED := build/spark-archive
PACKED_PYTHON := $(PACKED)/environment/bin/python
SOURCES = pyproject.toml $(shell find tieredctl $(PACKAGES) -type f -not -path '*/__pycache__/*')

.PHONY: help demo check test servers preparation exhaustive lint bench bench-scale ten-tasks fuzz soak completions kafka-messages pictures site wheel sbom release spark-archive lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | while IFS='|' read -r target meaning; do \
		printf '%-18s %s\n' "$$target" "$$meaning"; done

demo: $(VENV)/runtime.installed $(VENV)/packages.installed ## See it work on a real captured cluster
	@$(if $(JAVA_FOR_SPARK),$(MAKE) --silent $(VENV)/spark.installed)
	@$(BIN)/tieredctl demo

check: lint ## Lint, then run the tests that need no server, no Java and no process of their own: three minutes
	@echo "Running the tests that need no server, no Java and no process of their own"
	@# Lint has run that file.
	@TIEREDCTL_SHARE=$(SHARE_OF_COMMIT) $(RUN_TESTS) --numprocesses 3 --ignore tests/house/test_store_changes.py \
		-m 'not integration and not spark and not exhaustive and not divided and not processes'

test: servers preparation lint ## Lint, then run all tests, of the exhaustive ones a share; CONTRIBUTING.md names what some of them need
	@for tool in java mvn go postgres chromium promtool zsh fish; do \
		PATH="$$PATH:$(POSTGRES_OF_DEBIAN)" command -v $$tool >/dev/null || \
		echo "$$tool is not on the PATH: tests that need it $(if $(CI),fail,are skipped)"; done
	@echo "Running all tests; of the exhaustive ones share $(SHARE_OF_COMMIT)"
	@# One more than cores, as those with real servers mostly wait.
	@TIEREDCTL_SHARE=$(SHARE_OF_COMMIT) $(RUN_TESTS) --numprocesses 3

# Servers are built once: in the background, while installation and lint leave a core, and tests run without them.
servers:
	@"$(PYTHON)" -m tests.rigs.preparation servers >/dev/null 2>&1 &

preparation: $(VENV)/development.installed $(VENV)/packages.installed
	@TIEREDCTL_SHARE=$(SHARE_OF_COMMIT) $(BIN)/python -m tests.rigs.preparation >/dev/null 2>&1 &

exhaustive: $(VENV)/development.installed $(VENV)/packages.installed ## Run the exhaustive tests, all or SHARE=2/16
	@TIEREDCTL_SHARE=$(SHARE) $(RUN_TESTS) --numprocesses 3 -m 'exhaustive or divided or hypothesis'

lint: $(VENV)/development.installed $(VENV)/packages.installed ## Check style, types, the direction of imports, who changes stores, and subjects of commits
	@echo "Checking style, types and the direction of imports"
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary $(CODE)
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest --quiet --quiet --no-header tests/house/test_store_changes.py
	@# Subjects of before that date were sentences of any length.
	@! git log --since=2026-11-25 --format=%s 2>/dev/null | grep -E '^.{73}' || \
		{ echo "These commits' subjects pass 72 characters" >&2; exit 1; }

bench: $(VENV)/development.installed $(VENV)/packages.installed ## Measure speed and memory
	@$(BIN)/python -m benchmarks

OBJECTS ?= 1000000
GIGABYTES ?= 0
SCALE ?=

bench-scale: $(VENV)/development.installed $(VENV)/packages.installed ## Measure Spark and this machine: OBJECTS=1000000 GIGABYTES=25 SCALE=--iceberg
	@$(BIN)/python -m benchmarks.scale --objects $(OBJECTS) --verify-gigabytes $(GIGABYTES) $(SCALE)

ten-tasks: $(VENV)/development.installed $(VENV)/packages.installed ## Time the tasks of docs/compared.md; kcl too if it is on the PATH
	@$(BIN)/python -m benchmarks.ten_tasks

fuzz: $(VENV)/development.installed $(VENV)/packages.installed ## Feed five million damaged inputs to the readers: 15 minutes
	@TIEREDCTL_FUZZ_INPUTS=5000000 $(BIN)/python -m pytest --timeout 0 tests/formats/test_fuzz.py

soak: $(VENV)/development.installed $(VENV)/packages.installed ## Kill a thousand processes while they remove objects, and lie to a hundred: hours
	@TIEREDCTL_CHAOS_SEEDS=10000 TIEREDCTL_CHAOS_PROCESSES=1000 TIEREDCTL_AZURE_CHAOS_EVERY=1 TIEREDCTL_LYING_SEEDS=100 \
		$(BIN)/python -m pytest --timeout 0 tests/removal/chaos tests/cli/test_lying_store.py
	@TIEREDCTL_DISKLESS_CHAOS_SEEDS=1000 TIEREDCTL_DISKLESS_CHAOS_EVERY=1 \
		$(BIN)/python -m pytest --timeout 0 tests/diskless/chaos
	@TIEREDCTL_PROPERTY_EXAMPLES=2000 $(BIN)/python -m pytest --timeout 0 tests/coordinator \
		tests/diskless/test_simulation.py
	@TIEREDCTL_KILLED=200 $(BIN)/python -m pytest --timeout 0 -k killed_at_any_moment \
		tests/store_copy tests/cli/test_heal.py tests/cli/test_index_recovery_stopped.py tests/recovery tests/backup
	@TIEREDCTL_PIPELINE_CHURN_SECONDS=3600 \
		$(BIN)/python -m pytest --timeout 0 tests/spark/pipeline/test_moving_cluster.py
	@TIEREDCTL_RACED_RUNS=200 TIEREDCTL_EXPORTER_LOOKS=20000 \
		$(BIN)/python -m pytest --timeout 0 -k 'what_moves or many_looks' \
		tests/tiering/test_broker_dies.py tests/monitoring/test_memory_of_looks.py

completions: $(VENV)/runtime.installed $(VENV)/packages.installed ## Write the table of all commands, and shells' completions, again
	@$(BIN)/python -m tieredctl.cli.command_rows
	@mkdir -p completions
	@$(BIN)/tieredctl completions bash > completions/tieredctl.bash
	@$(BIN)/tieredctl completions zsh > completions/_tieredctl
	@$(BIN)/tieredctl completions fish > completions/tieredctl.fish

pictures: $(VENV)/development.installed $(VENV)/packages.installed ## Take the documentation's pictures of report pages again
	@$(BIN)/python -m tests.rigs.pictures

site: $(VENV)/development.installed $(VENV)/packages.installed ## Build the documentation's site in dist/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict
	@echo "Built dist/site/index.html"

kafka-messages: $(VENV)/development.installed $(VENV)/packages.installed ## Copy Kafka's definitions of messages and settings from its jars
	@$(BIN)/python -m tests.rigs.message_definitions
	@$(BIN)/python -m tests.rigs.setting_definitions

DIST ?= dist

wheel: $(VENV)/build.installed ## Build all packages into dist: wheels and source distributions, the same bytes everywhere
	@rm -f $(DIST)/*.whl
	@for package in . $(PACKAGES); do \
		(cd $$package && "$(CURDIR)/$(BIN)/python" -m hatchling build --directory "$(abspath $(DIST))") || exit; done

SBOM ?= dist/tieredctl.cdx.json
SBOM_LOCK ?= requirements-runtime.lock

sbom: $(VENV)/development.installed ## List what SBOM_LOCK=requirements-runtime.lock installs, in CycloneDX's format
	@mkdir -p $(dir $(SBOM))
	@$(BIN)/python -W ignore -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible \
		--output-format JSON --output-file $(SBOM) $(SBOM_LOCK)

RELEASE ?= dist/release

release: ## Make the folder that people install from: all packages, their SHA-256, and what they need in CycloneDX's format
	@rm -rf $(RELEASE)
	@$(MAKE) wheel DIST=$(RELEASE)
	@$(MAKE) sbom SBOM=$(RELEASE)/tieredctl.cdx.json
	@cd $(RELEASE) && sha256sum -- * > SHA256SUMS
	@echo "Made $(RELEASE): uv tool install --find-links $(RELEASE) tieredctl --with tieredctl-local"

spark-archive: $(ARCHIVE) ## Pack what Spark's executors need, plugins included, for spark-submit --archives

# Versions in the locks stay unless pyproject.toml no longer allows them; remove a lock to bring all up to date.
comma := ,
LOCAL_NAMES = $(shell sed -n 's/^name = "\([a-z_-]*\)"$$/\1/p' pyproject.toml $(PACKAGES:%=%/pyproject.toml))
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-header
RESOLVE = printf '%s\n' $(1) | $(COMPILE) - $(LOCAL_NAMES:%=--no-emit-package %) $(2)
EVERYTHING := .[all] $(PACKAGES:%=./%)
# Those that a test tries besides the one in requirements.lock.
OTHER_SPARKS := 4.0 4.1 4.2
# Executors draw nothing.
FOR_EXECUTORS := .[azure$(comma)diskless$(comma)gs$(comma)kafka$(comma)s3$(comma)spark] $(PACKAGES:%=./%)

lock: ## Regenerate the locks (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: python3 -m pip install uv" >&2; exit 1; }
	@$(call RESOLVE,$(EVERYTHING), \
		--group pyproject.toml:build --group pyproject.toml:dev -o requirements.lock)
	@$(call RESOLVE,. $(PLUGINS:%=./%),-c requirements.lock -o requirements-runtime.lock)
	@$(call RESOLVE,.[spark] $(PACKAGES:%=./%),-c requirements.lock -o requirements-spark.lock)
	@$(call RESOLVE,$(FOR_EXECUTORS),--no-emit-package pyspark --no-emit-package py4j \
		-c requirements.lock -o requirements-archive.lock)
	@$(COMPILE) --group pyproject.toml:build -c requirements.lock -o requirements-build.lock
	@for release in $(OTHER_SPARKS); do \
		echo "pyspark==$$release.*" | $(COMPILE) - -o requirements-spark-$$release.lock || exit; done

clean: ## Remove everything that make built
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	@"$(PYTHON)" -c '$(IS_NEW_ENOUGH)' 2>/dev/null || \
		{ echo "tieredctl needs Python 3.11 or newer; name one with make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip' 2>/dev/null || \
		{ echo "$(PYTHON) lacks ensurepip; on Debian, install python3-venv" >&2; exit 1; }
	@echo "Making $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv --clear $(VENV)

$(VENV)/build.installed: requirements-build.lock | $(BIN)/python
	@$(INSTALL_LOCKED) -r $<
	@touch $@

$(VENV)/runtime.installed: requirements-runtime.lock $(VENV)/build.installed
	@echo "Installing what tieredctl needs (80 MB, once)"
	@$(INSTALL_LOCKED) -r $<
	@touch $@

$(VENV)/spark.installed: requirements-spark.lock $(VENV)/build.installed
	@echo "Installing Spark, as there is $(JAVA_FOR_SPARK) (470 MB, once)"
	@$(INSTALL_LOCKED) -r $<
	@touch $@

$(VENV)/development.installed: requirements.lock $(VENV)/build.installed
	@echo "Installing what tieredctl, its tests and Spark need (580 MB, once)"
	@$(INSTALL_LOCKED) -r $<
	@touch $(VENV)/runtime.installed $(VENV)/spark.installed $@

$(VENV)/packages.installed: pyproject.toml $(PACKAGES:%=%/pyproject.toml) $(VENV)/build.installed
	@$(PIP) install --no-deps --no-index --no-build-isolation $(patsubst %,-e ./%,. $(PACKAGES))
	@touch $@

$(PACKED)/requirements.installed: requirements-archive.lock $(VENV)/build.installed
	@echo "Installing what executors need (390 MB, once)"
	@$(BIN)/python -m venv --clear --without-pip $(PACKED)/environment
	@$(PIP) --python $(PACKED_PYTHON) install --require-hashes --only-binary :all: --no-compile -r $<
	@touch $@

$(ARCHIVE): $(PACKED)/requirements.installed $(SOURCES)
	@echo "Packing $@"
	@rm -rf $(PACKED)/wheels $(PACKED)/pex
	@$(PIP) wheel --no-deps --no-index --no-build-isolation --wheel-dir $(PACKED)/wheels . $(PACKAGES:%=./%)
	@$(PIP) --python $(PACKED_PYTHON) install --force-reinstall --no-deps --no-index --no-compile $(PACKED)/wheels/*.whl
	@$(BIN)/pex --pex-root $(PACKED)/cache --venv-repository $(PACKED)/environment --intransitive --layout loose \
		--inherit-path=fallback --output-file $(PACKED)/pex --python-shebang \
		"$$($(BIN)/python -c 'import sys; print("/usr/bin/env python%d.%d" % sys.version_info[:2])')" >/dev/null
	@mkdir -p $(@D)
	@tar --create --use-compress-program 'gzip -3' --file $@.unfinished --directory $(PACKED)/pex .
	@mv $@.unfinished $@
