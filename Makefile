# The commands of this project; each does all that it needs on a fresh Debian 12 or macOS 13+ with git, make and rustup.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test check build lint mac-check mac-rehearsal mac-report snapshots screenshots recording bench-downloads bench-engine bench-gateway bench-paging bench-eviction bench-idle bench-passages bench-readings bench-speculation bench-cancel mutants mutations setup-models eval eval-paths conformance stress stress-embeds stress-paged stress-waits fuzz malformed setup binaries ui clean

# Sets Node, compiler caches and the like.
with := bundle/env

build := $(with) cargo build --release --locked

help: ## Show this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1|\2/p' Makefile | column -t -s '|'

run: ## Build everything, fetch the starter model and open the app
	@bundle/setup run
ifeq ($(shell uname -s),Darwin)
	@$(with) bundle/macos-app
	@bundle/try-worker
else
	@$(MAKE) --no-print-directory binaries
endif
	@$(with) bundle/start

test: ## Run the tests, ending in one verdict (RUN_SLOW_TESTS=1 for the slow ones too)
	@bundle/setup test
	@$(with) tests/run

build: ## Build tierbar, its worker, guard, sandbox and reader of documents, and tierbar-app into target/release
	@bundle/setup run
	@$(MAKE) --no-print-directory binaries

check: ## Check a change in minutes: lints, types, the page and its pictures, unit tests of the crates it reaches
	@bundle/setup test
	@$(with) tests/run format page ui-build clippy ui pictures changed

lint: ## Check formatting, lints and types
	@bundle/setup run
	@$(with) tests/run format page ui-build clippy

mac-check: ## Type-check and lint the whole workspace for macOS (on Linux, or on a Mac)
	@bundle/setup run
	@$(with) bundle/mac-check || [ $$? -eq 77 ]

mac-rehearsal: ## Rehearse a Mac without one: `make run`, macOS's side of paging and limits, a GPU, and a link of the programs
	@bundle/setup test
	@RUN_SLOW_TESTS=1 $(with) "$$HOME/.cache/tierbar/venv/bin/python" tests/rehearsal/run
	@$(with) tests/rehearsal/parts
	@$(with) tests/rehearsal/gpu || [ $$? -eq 77 ]
	@$(with) tests/rehearsal/link || [ $$? -eq 77 ]

mac-report: ## Check Tierbar on this Mac in ten minutes, and write target/mac-report.md
	@bundle/mac-report

# Pictures are few colors small: they are compared with a tolerance far above what that takes away.
snapshots: ## Accept how the windows look now, as the pictures in ui/pictures/states (ONLY=word)
	@bundle/setup test
	@$(MAKE) --no-print-directory ui
	@cd ui && status=0 && { ../$(with) npm run --silent pictures -- --update-snapshots changed $(if $(ONLY),-g "$(ONLY)") || status=$$?; } && \
		cd pictures/states && git ls-files -z --modified --others -- '*.png' | xargs -0r mogrify -strip +dither -colors 200 \
		-define png:compression-level=9 -define png:compression-filter=0 -define png:color-type=3 && exit $$status

screenshots: ## Make the pictures of docs/images
	@bundle/setup screenshots
	@$(MAKE) --no-print-directory binaries
	@$(build) --example screenshots
	@$(with) target/release/examples/screenshots

recording: ## Record the demo of the README, docs/images/demo.webp
	@bundle/setup screenshots
	@$(MAKE) --no-print-directory binaries
	@cd ui && TIERBAR_BIN_DIR=../target/release ../$(with) npx --no-install playwright test -c recording

bench-downloads: ## Measure our downloads beside curl, aria2 and the hub's own client
	@bundle/setup run
	@bundle/packages downloads
	@$(build) --bin fetch-file --example remote_header
	@$(with) tests/bench/downloads

bench-engine: ## Measure our worker beside upstream's llama-server
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker
	@$(with) tests/bench/engine

bench-speculation: ## Measure whether speculation pays, by kind of prompt, with the models of `make setup-models` (ARGS=)
	@bundle/setup run
	@$(build) --bin tierbar-worker
	@$(with) tests/bench/speculation $(ARGS)

setup-models: ## Fetch the model of `make eval` (1.1 GB more than those of the tests)
	@bundle/setup run
	@"$$HOME/.cache/tierbar/venv/bin/python" bundle/models evaluation

eval: ## Measure search in documents, citations, routing, triage, summaries, calls, the agent and compact contexts with each model that is here, as tables (SHORT=1 for a quarter of an hour, MODEL=file)
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker --bin tierbar-guard --bin tierbar-extract --bin tierbar-sandbox --example context_forms
	@$(with) tests/eval/run $(if $(SHORT),--short) $(if $(MODEL),--model "$(MODEL)")

conformance: ## Try other people's clients, as a table (ONLY=, PART=, MODEL=, WRITE=1), or Open Responses' own tests (OPEN_RESPONSES=folder, MODEL=)
	@bundle/setup test
	@$(build) --bin tierbar --bin tierbar-worker --bin tierbar-guard --bin tierbar-sandbox
	@$(with) $(if $(OPEN_RESPONSES),tests/conformance/open_responses "$(OPEN_RESPONSES)" $(if $(MODEL),--model "$(MODEL)"),tests/conformance/run $(if $(ONLY),--only "$(ONLY)") $(if $(MODEL),--model "$(MODEL)") $(if $(WRITE),--write) $(PART))

eval-paths: ## Have an agent mend a real package, and ask 30 real papers and mails five questions, with Qwen2.5-Coder 1.5B (MODEL=)
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker --bin tierbar-guard --bin tierbar-extract --bin tierbar-sandbox
	@$(with) "$$HOME/.cache/tierbar/venv/bin/python" tests/eval/paths.py $(if $(MODEL),--model "$(MODEL)")

bench-gateway: ## Measure our gateway alone, beside LiteLLM's proxy
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-guard --bin tierbar-sandbox --example gateway_load
	@$(with) tests/bench/gateway

bench-paging: ## Measure a mixture larger than memory beside llama-server; as root, for control groups (ROUNDS=)
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker --bin tierbar-mixture --example simulate_experts
	@$(with) tests/bench/paging --dense --approximate --read-ahead 128 $(if $(ROUNDS),--rounds $(ROUNDS))

bench-eviction: ## Compare what the cache of experts reads with what LRU and LFU would
	@bundle/setup run
	@$(build) --example simulate_experts
	@$(with) target/release/examples/simulate_experts

bench-idle: ## Measure the memory of the idle app and server, how fast a window opens, and what an open one takes (Linux)
	@bundle/setup test
	@$(MAKE) --no-print-directory binaries
	@$(build) --example idle_memory
	@$(with) target/release/examples/idle_memory

bench-passages: ## Measure a search by words in 60,000 passages (PASSAGES=)
	@bundle/setup run
	@$(build) --example passages
	@$(with) target/release/examples/passages $(PASSAGES)

bench-readings: ## Measure what reading the machine once a second costs
	@bundle/setup run
	@$(build) --example sampling_cost
	@$(with) target/release/examples/sampling_cost

bench-cancel: ## Measure how long Gemma 3's image encoder computes after its client has left
	@bundle/setup test
	@$(with) env TIERBAR_CANCELS=20 cargo quick-test -p tierbar-engine --test engine -- --ignored --nocapture --test-threads 1 encoder::a_canceled

mutants: ## Change the policy, queue, limits and keys line by line, and list what no test notices (FILE=)
	@command -v cargo-mutants >/dev/null || { echo "Run \`cargo install --locked cargo-mutants\`, then try again."; exit 1; }
	@$(with) env PROPTEST_MAX_SHRINK_ITERS=0 cargo mutants --output target $(if $(FILE),--re '^$(FILE):')

mutations: ## Break fifteen lines one at a time, and check that the test named for each fails (ONLY=word)
	@bundle/setup test
	@$(with) tests/mutations $(ONLY)

stress: ## Swap models, kill workers and take memory away, beside llama-server; as root in a control group
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker
	@$(with) tests/stress/stress

stress-embeds: ## Embed and chat in turn, a thousand requests, and count the models loaded (TURNS=)
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker
	@$(with) tests/stress/stress embeds $(if $(TURNS),--turns $(TURNS))

stress-paged: ## Use a model larger than memory for an hour beside others; as root in a control group (MINUTES=)
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker --bin tierbar-guard --bin tierbar-sandbox --bin tierbar-mixture
	@$(with) tests/stress/paged $(if $(MINUTES),--minutes $(MINUTES))

stress-waits: ## Measure what short requests wait while a long answer and a request for another tier go on (TOKENS=)
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker
	@$(with) tests/stress/waits $(if $(TOKENS),--tokens $(TOKENS))

fuzz: ## Run the fuzzers over GGUF headers and documents and of the sandbox from inside, ten minutes each (FUZZ_SECONDS)
	@bundle/setup run
	@$(build) --bin tierbar-sandbox
	@$(with) tests/fuzz/run

malformed: ## Send 10,000 broken requests, streams, answers, messages, documents, exports and contexts each, and let schemathesis read the API document
	@bundle/setup run
	@$(build) --bin tierbar --bin tierbar-worker --bin tierbar-extract --bin tierbar-guard --bin tierbar-sandbox
	@$(with) tests/malformed/run --real 1000

setup: ## Install what building and testing need
	@bundle/setup test

clean: ## Delete what was built; what was fetched stays in ~/.cache/tierbar
	rm -rf target target-mac target-bundle ui/dist/* ui/node_modules test-results

# The rest is for the targets above, after setup.

programs := tierbar tierbar-app tierbar-worker tierbar-guard tierbar-extract tierbar-sandbox
binaries: ui
	@$(build) $(programs:%=--bin %)
	@bundle/try-worker

# The page is compiled into the binaries: it is only built again when it changed, so that they are too. The types of the API
# (`openapi.ts`) are generated from docs/openapi.json, and leave no trace in what is built.
ui_sources := $(shell find ui \( -name node_modules -o -name dist -o -name journey -o -name pictures -o -name recording -o -name openapi.ts \) -prune -o -type f -print)

ui: ui/dist/index.html

ui/dist/index.html: $(ui_sources)
	@echo "▸ User interface"
	@cd ui && ../$(with) npm run --silent build
