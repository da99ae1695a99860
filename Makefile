# The commands of this project; each does all that it needs on a fresh Debian 12 or macOS 13+ with git, make and rustup.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test build lint mac-check screenshots bench-downloads bench-engine bench-gateway eval stress fuzz malformed setup binaries all-targets ui clean

# Sets Node, compiler caches and the like.
with := bundle/env

help: ## Show this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/p' Makefile | column -t -s '|'

run: ## Build everything, fetch the starter model and open the app
	@bundle/setup run
ifeq ($(shell uname -s),Darwin)
	@$(with) bundle/macos-app
else
	@$(MAKE) --no-print-directory binaries
endif
	@$(with) bundle/start

test: ## Run every test, ending in one verdict
	@bundle/setup test
	@$(with) tests/run

build: ## Build tierbar, its worker and guard, and tierbar-app into target/release
	@bundle/setup run
	@$(MAKE) --no-print-directory binaries

lint: ## Check formatting, lints and types
	@bundle/setup run
	@$(with) tests/run lint

mac-check: ## Type-check and lint the whole workspace for macOS (on Linux, or on a Mac)
	@bundle/setup run
	@$(with) tests/run mac-check

screenshots: ## Make the pictures of docs/images
	@bundle/setup screenshots
	@$(MAKE) --no-print-directory all-targets
	@$(with) target/release/screenshots

bench-downloads: ## Measure our downloads beside curl and the hub's own client
	@bundle/setup run
	@$(with) cargo build --release --locked -p tierbar-fetch -p tierbar-library --bin fetch-file --example remote_header
	@$(with) tests/bench/downloads

bench-engine: ## Measure our worker beside upstream's llama-server
	@bundle/setup run
	@$(with) cargo build --release --locked -p tierbar-engine -p tierbar-cli
	@$(with) tests/bench/engine

eval: ## Sort the labelled prompts of tests/eval with each model that is here, as `auto` would
	@bundle/setup run
	@$(with) cargo build --release --locked -p tierbar-engine -p tierbar-cli -p tierbar-guard
	@$(with) tests/eval/run

bench-gateway: ## Measure our gateway alone, beside LiteLLM's proxy
	@bundle/setup run
	@$(with) cargo build --release --locked -p tierbar-cli -p tierbar-guard -p tierbar-tests --bin tierbar --bin tierbar-guard --bin gateway_load
	@$(with) tests/bench/gateway

stress: ## Swap models, kill workers and take memory away, beside llama-server; as root in a control group
	@bundle/setup run
	@$(with) cargo build --release --locked -p tierbar-engine -p tierbar-cli
	@$(with) tests/stress/stress

fuzz: ## Run the fuzzers over GGUF headers, ten minutes each (FUZZ_SECONDS)
	@bundle/setup run
	@$(with) tests/fuzz/run

malformed: ## Send the gateway 10,000 broken requests, and let schemathesis read its API document
	@bundle/setup run
	@$(with) cargo build --release --locked -p tierbar-engine -p tierbar-cli
	@$(with) tests/malformed/run --real 1000

setup: ## Install what building and testing need
	@bundle/setup test

clean: ## Delete what was built; what was fetched stays in ~/.cache/tierbar
	rm -rf target target-mac target-bundle ui/dist/* ui/node_modules test-results

# The rest is for the targets above, after setup.

binaries: ui
	@$(with) cargo build --release --locked -p tierbar-app -p tierbar-cli -p tierbar-engine -p tierbar-guard

# What the tests run and are. Built at once, since their dependencies turn on features that `binaries` does without.
all-targets: ui
	@$(with) cargo build --release --locked --workspace --all-targets

# The page is compiled into the binaries: it is only built again when it changed, so that they are too.
ui_sources := $(shell find ui \( -name node_modules -o -name dist -o -name journey \) -prune -o -type f -print)

ui: ui/dist/index.html

ui/dist/index.html: $(ui_sources)
	@echo "▸ User interface"
	@cd ui && ../$(with) npm run --silent build
