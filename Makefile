# Yardmaster. `make` prints this help; `make check` is what CI runs.

GO      ?= go
CACHE   := $(CURDIR)/.cache
LINT    := $(CACHE)/golangci-lint
LINT_V  := v2.15.0
VULN    := $(CACHE)/govulncheck
VULN_V  := v1.8.0
S3      := $(CACHE)/versitygw
S3_V    := v1.8.0
BESIDE  := $(GO) run ./internal/db/dbtest/cluster # one PostgreSQL for the tests of all packages
FUZZ_T  ?= 100000x
DEV     ?= 127.0.0.1:8081
SERVER  ?= http://127.0.0.1:8080

# A package's folder is no part of its key in the build cache: what one clone has
# compiled, another need not.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# Where scripts/deps unpacks programs for those who cannot install any.
export PATH := $(CACHE)/deps/bin:$(PATH)

# The packages that start goroutines; a test holds the list.
RACE := \
  ./internal/api/idempotency \
  ./internal/api/limit \
  ./internal/api/mcp \
  ./internal/api/op \
  ./internal/api/rest \
  ./internal/box/acp \
  ./internal/box/broker \
  ./internal/box/driver \
  ./internal/box/limits \
  ./internal/box/modelproxy \
  ./internal/box/scrub \
  ./internal/box/spool \
  ./internal/bus/... \
  ./internal/child \
  ./internal/client \
  ./internal/codehost/github \
  ./internal/codehost/relay \
  ./internal/codehost/smarthttp \
  ./internal/db \
  ./internal/domain/ask \
  ./internal/domain/box \
  ./internal/domain/budget \
  ./internal/domain/ci \
  ./internal/domain/delivery \
  ./internal/domain/gateway \
  ./internal/domain/intent \
  ./internal/domain/push \
  ./internal/domain/repo \
  ./internal/domain/run \
  ./internal/domain/service \
  ./internal/domain/session \
  ./internal/domain/signin \
  ./internal/domain/source \
  ./internal/domain/stream \
  ./internal/domain/tracker \
  ./internal/domain/webhook \
  ./internal/event \
  ./internal/llm/... \
  ./internal/proof/github/... \
  ./internal/terminal

.NOTPARALLEL: # what is lacking is said and gotten first

.PHONY: help
help: ## print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## build ./yardmaster
	$(GO) build -o yardmaster ./cmd/yardmaster

.PHONY: demo
demo: ## run the whole job once, on a throwaway server
	$(GO) run ./cmd/yardmaster demo --once

.PHONY: deps
deps: $(S3)-$(S3_V) ## say what the tests need and this machine lacks, and get it
	@scripts/deps $(NEEDS)
	@$(GO) run ./internal/proof/github/description/get

# The S3 server of the tests. Without it they fail by name.
$(S3)-$(S3_V):
	@mkdir -p $(CACHE)
	-GOBIN=$(CACHE) $(GO) install github.com/versity/versitygw/cmd/versitygw@$(S3_V)
	-@mv $(S3) $@

.PHONY: test
test: deps ## run the tests: both databases, real NATS, git and processes
	$(BESIDE) $(GO) test -timeout 30m ./...

.PHONY: race
race: NEEDS := race
race: deps ## run the packages that start goroutines under the race detector; a test holds the list
	$(BESIDE) $(GO) test -race $(RACE)

.PHONY: vet
vet: ## gofmt, go vet, and a tidy go.mod
	@test -z "$$(gofmt -l cmd internal)" || { gofmt -l cmd internal; echo 'these files are not formatted: run gofmt -w'; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: lint
lint: $(LINT)-$(LINT_V) ## golangci-lint; .golangci.yml gives the reason of each exception
	$(LINT)-$(LINT_V) run ./...

$(LINT)-$(LINT_V):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_V)
	@mv $(LINT) $@

.PHONY: vuln
vuln: deps $(VULN)-$(VULN_V) ## look for known vulnerabilities; says so if their database cannot be reached
	@scripts/vuln $(VULN)-$(VULN_V)

$(VULN)-$(VULN_V):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(VULN_V)
	@mv $(VULN) $@

.PHONY: sbom
sbom: build ## write sbom.json, the bill of materials of ./yardmaster (CycloneDX)
	$(GO) run ./internal/proof/sbom yardmaster > sbom.json

.PHONY: release
release: ## build dist/ for Linux on amd64 and arm64, with SHA-256 sums; VERSION=v1.2.3
	@scripts/release dist

.PHONY: reproducible
reproducible: ## build a release twice, apart from each other, and compare the bytes (minutes)
	@scripts/reproducible

.PHONY: generate
generate: ## write the generated files: docs/openapi.json and docs/events.json
	$(GO) run ./cmd/yardmaster openapi > docs/openapi.json
	$(GO) run ./cmd/yardmaster events > docs/events.json

.PHONY: web
web: ## build the dashboard: its typed client, its types, its files in internal/web/dist
	$(GO) run ./internal/proof/bundle

.PHONY: web-dev
web-dev: ## serve the dashboard's sources at DEV, built for each page that is asked for, before the server SERVER
	$(GO) run ./internal/proof/bundle -dev $(DEV) -server $(SERVER)

.PHONY: web-check
web-check: ## fail if the dashboard that is committed is not what its sources say
	$(GO) run ./internal/proof/bundle -check

.PHONY: pictures
pictures: deps ## take the pictures of docs/pictures anew, in a real browser and on a terminal
	$(GO) test ./internal/proof/dashboard -run TestPictures -count 1 -update
	$(GO) test ./cmd/yardmaster -run TestRecording -count 1 -update

.PHONY: check
check: NEEDS := race
check: deps vet web-check test race demo chaos lint vuln ## everything a change must pass, in this order

.PHONY: e2e-agents
e2e-agents: deps ## run real coding agents from npm to a merged pull request
	scripts/e2e-agents

.PHONY: environments
environments: deps ## run the demo as root and others, with and without isolation, where folders are closed
	scripts/environments

MINUTES ?= 0.5
SEED    ?= 1

.PHONY: chaos
chaos: ## harm real processes for MINUTES (0.5) as SEED (1) says, and count what was lost
	$(GO) run ./cmd/yardmaster chaos --minutes $(MINUTES) --seed $(SEED)

.PHONY: conformance
conformance: deps ## hold the API against linters, generated clients, a validator and MCP's own clients
	scripts/conformance/run

.PHONY: fuzz
fuzz: ## fuzz every target with FUZZ_T inputs (100000x), or for a time (20s)
	@scripts/fuzz $(FUZZ_T)

STEPS   ?= 100000

.PHONY: model
model: deps ## drive the work plane through STEPS (100000) random steps on each database
	$(GO) test ./internal/app -run TestWorkUnderDisorder -steps $(STEPS) -timeout 0 -v

.PHONY: bench
bench: ## measure against baselines in the same run; -write updates docs/benchmarks.md
	$(GO) run ./internal/proof/bench

.PHONY: clean
clean: ## remove what was built
	rm -rf yardmaster sbom.json dist $(CACHE)
