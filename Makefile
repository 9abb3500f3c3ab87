# Yardmaster. `make` prints this help; `make check` is what CI runs.

GO      ?= go
# What is fetched and built for the tests is the user's, so that a fresh clone has it too.
CACHE   := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/yardmaster
PROGRAM := $(CURDIR)/yardmaster
LINT    := $(CACHE)/golangci-lint
LINT_V  := v2.15.0
HELM    := $(CACHE)/helm
HELM_V  := v4.3.1
KUBECONFORM   := $(CACHE)/kubeconform
KUBECONFORM_V := v0.8.0
KUBESCORE     := $(CACHE)/kube-score
KUBESCORE_V   := v1.20.0
VULN    := $(CACHE)/govulncheck
VULN_V  := v1.8.0
S3      := $(CACHE)/versitygw
S3_V    := v1.8.0
BESIDE  := $(GO) run ./internal/db/dbtest/cluster # one PostgreSQL for the tests of all packages
GATE    := $(GO) run ./internal/proof/gate
FUZZ_T  ?= 100000x
DEV     ?= 127.0.0.1:8081
SERVER  ?= http://127.0.0.1:8080
MINUTES ?= 0.5
SEED    ?= 1
STEPS   ?= 100000

# A package's folder is no part of its key in the build cache: what one clone has
# compiled, another need not. For go by hand: go env -w GOFLAGS=-trimpath CGO_ENABLED=0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
# As the program is released; the race detector alone needs C.
export CGO_ENABLED := 0
# Tests that start the program take this one.
export YARDMASTER_PROGRAM := $(PROGRAM)
export GOLANGCI_LINT_CACHE := $(CACHE)/lint

# Where scripts/deps unpacks programs for those who cannot install any.
export PATH := $(CACHE)/deps/bin:$(PATH)

# The packages that start goroutines; a test holds the list.
RACE := \
  ./internal/api/held \
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
  ./internal/box/program \
  ./internal/box/scrub \
  ./internal/box/spool \
  ./internal/box/worktree \
  ./internal/bus/... \
  ./internal/certificate \
  ./internal/child \
  ./internal/client \
  ./internal/codehost/builtin \
  ./internal/codehost/homes \
  ./internal/codehost/github \
  ./internal/codehost/relay \
  ./internal/codehost/smarthttp \
  ./internal/db \
  ./internal/db/dbtest \
  ./internal/db/due \
  ./internal/domain/ask \
  ./internal/domain/box \
  ./internal/domain/budget \
  ./internal/domain/ci \
  ./internal/domain/delivery \
  ./internal/domain/gateway \
  ./internal/domain/intent \
  ./internal/domain/logsink \
  ./internal/domain/pull \
  ./internal/domain/pull/merge \
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
  ./internal/proof/recorded \
  ./internal/remote \
  ./internal/terminal

.NOTPARALLEL: # what is lacking is said and gotten first

.PHONY: help
help: ## print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: check
check: ## everything a change must pass: quarter of an hour
	@$(GATE) stages check deps format tidy web-check lint test release-check demo

.PHONY: passed
passed: ## write into .ci/passed.tsv what this machine knows to have passed, for machines that know nothing
	@$(GATE) tell

.PHONY: fast
fast: ## of that, what has changed since the last pass: under three minutes, before a commit
	@$(GATE) stages fast format tidy web-check lint fast-test

.PHONY: nightly
nightly: export NEEDS := race
nightly: ## all else, whole: before an issue is called resolved, and each night
	@$(GATE) stages -all nightly deps race night-test environments offline conformance e2e-agents alerts cross packages-check reproducible walk chaos-night model fuzz vuln bench-check

.PHONY: build
build: ## build ./yardmaster
	$(GO) build -o $(PROGRAM) ./cmd/yardmaster

.PHONY: demo
demo: build ## run the whole job once, on a throwaway server
	$(PROGRAM) demo --once

# What the stages of a run have once need not be looked for again.
DEPS := $(if $(YARDMASTER_GATE_WORDS),,deps)

.PHONY: deps
deps: $(S3)-$(S3_V) ## say what the tests need and this machine lacks, and get it
	@scripts/deps $(NEEDS)
	@$(GO) run ./internal/proof/github/description/get

# installed makes a program of a Go module at a version. Three tries: a stumble of the
# network refuses nobody.
define installed
@mkdir -p $(CACHE)/bin
@for n in 1 2 3; do GOBIN=$(CACHE)/bin $(GO) install $(1) && break; done
@mv $(CACHE)/bin/$(2) $@
endef

# The S3 server of the tests. Without it they fail by name.
$(S3)-$(S3_V):
	-$(call installed,github.com/versity/versitygw/cmd/versitygw@$(S3_V),versitygw)

.PHONY: test
test: $(DEPS) build ## run the tests of all packages, but for what is left to the night
	@$(BESIDE) $(GATE) suite

.PHONY: fast-test
fast-test: build
	@$(BESIDE) $(GATE) suite -fast

.PHONY: night-test
night-test: $(DEPS) build ## run the tests that are left to the night
	@$(BESIDE) $(GATE) suite -night

.PHONY: transcripts
transcripts: ## play the transcripts of one domain: X=task, or X=task/retry; UPDATE=1 writes the answers into them
	$(GO) test ./internal/proof/transcript -run 'TestTranscripts/$(X)' $(if $(UPDATE),-update)

.PHONY: race
race: NEEDS := race
race: $(DEPS) ## run the packages that start goroutines under the race detector; a test holds the list
	@$(BESIDE) $(GATE) test -race -vet=off -count=1 -timeout=20m -- $(RACE)

# These are raced in any case: whatever moves, moves through them.
ALWAYS := +./internal/bus/... +./internal/db +./internal/domain/run +./internal/domain/stream +./internal/event +./internal/box/broker

.PHONY: race-changed
race-changed: ## the same, of the packages that have changed since they were raced, and a few more
	@$(GATE) stages race-changed race-some

.PHONY: race-some
race-some:
	@scripts/deps race
	@some=$$($(GATE) touched -since race-changed,nightly $(ALWAYS) $(RACE)) && \
	engines=$$($(GATE) engines -since race-changed,nightly) && YARDMASTER_ENGINES="$$engines" \
	$(BESIDE) $(GATE) test -day -race -vet=off -count=1 -timeout=20m -- $$some

.PHONY: format
format: ## fail if a file is not laid out by gofmt
	@test -z "$$(gofmt -l cmd internal)" || { gofmt -l cmd internal; echo 'these files are not formatted: run gofmt -w'; exit 1; }

.PHONY: tidy
tidy: ## fail if go.mod is not tidy, or a module not what go.sum says
	$(GO) mod tidy -diff
	$(GO) mod verify

.PHONY: lint
lint: $(LINT)-$(LINT_V) ## golangci-lint, with go vet; .golangci.yml gives the reason of each exception
	$(LINT)-$(LINT_V) run ./...

$(LINT)-$(LINT_V):
	$(call installed,github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_V),golangci-lint)

.PHONY: vuln
vuln: $(DEPS) $(VULN)-$(VULN_V) ## look for known vulnerabilities; says so if their database cannot be reached
	@scripts/vuln $(VULN)-$(VULN_V)

$(VULN)-$(VULN_V):
	$(call installed,golang.org/x/vuln/cmd/govulncheck@$(VULN_V),govulncheck)

.PHONY: sbom
sbom: build ## write sbom.json, the bill of materials of ./yardmaster (CycloneDX)
	$(GO) run ./internal/proof/sbom yardmaster > sbom.json

.PHONY: release
release: ## make dist/ from a clean checkout: archives, packages, sums, signatures; VERSION=v1.2.3 KEY=FILE, BASES=FOLDER for images
	@cd release && $(GO) run . -source .. -into ../dist -version '$(VERSION)' -key '$(abspath $(KEY))' -bases '$(abspath $(BASES))' $(RELEASE)

.PHONY: release-check
release-check: $(LINT)-$(LINT_V) ## the same as lint and test, of the module that makes releases
	@test -z "$$(gofmt -l release)" || { gofmt -l release; exit 1; }
	cd release && $(GO) mod tidy -diff && $(GO) test ./... && $(LINT)-$(LINT_V) run -c ../.golangci.yml ./...

.PHONY: cross
cross: $(LINT)-$(LINT_V) ## build and vet what this machine is not: other processors, and macOS, where the program is a box and the command line
	GOOS=linux GOARCH=arm64 $(GO) build -o /dev/null ./cmd/yardmaster
	GOOS=darwin GOARCH=amd64 $(GO) build -o /dev/null ./cmd/yardmaster
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/yardmaster
	GOOS=darwin GOARCH=arm64 $(LINT)-$(LINT_V) run --tests=false --enable-only govet ./cmd/yardmaster/... ./internal/box/... ./internal/child ./internal/cli/... ./internal/unixfile

.PHONY: reproducible
reproducible: ## build a release twice, apart from each other, and compare the bytes (minutes)
	@scripts/reproducible

.PHONY: packages-check
packages-check: $(HELM)-$(HELM_V) $(KUBECONFORM)-$(KUBECONFORM_V) $(KUBESCORE)-$(KUBESCORE_V) ## have others judge the packages, units, scripts, signatures and the chart of a trial release
	@scripts/packages-check $^

$(HELM)-$(HELM_V):
	$(call installed,helm.sh/helm/v4/cmd/helm@$(HELM_V),helm)

$(KUBECONFORM)-$(KUBECONFORM_V):
	$(call installed,github.com/yannh/kubeconform/cmd/kubeconform@$(KUBECONFORM_V),kubeconform)

$(KUBESCORE)-$(KUBESCORE_V):
	$(call installed,github.com/zegl/kube-score/cmd/kube-score@$(KUBESCORE_V),kube-score)

.PHONY: walk
walk: ## walk two releases from their files to their removal, on bare machines of network namespaces (root, minutes)
	@scripts/walk

.PHONY: generate
generate: ## write the generated files: docs/openapi.json and docs/events.json
	$(GO) run ./cmd/yardmaster openapi > docs/openapi.json
	$(GO) run ./cmd/yardmaster events > docs/events.json

.PHONY: web
web: ## build the dashboard: its typed client, its types, its files in internal/web/dist
	$(GO) run ./internal/proof/bundle

.PHONY: web-format
web-format: ## lay the dashboard's sources out, and say what else Biome finds in them
	$(GO) run ./internal/proof/bundle -format

.PHONY: web-dev
web-dev: ## serve the dashboard's sources at DEV, built for each page that is asked for, before the server SERVER
	$(GO) run ./internal/proof/bundle -dev $(DEV) -server $(SERVER)

.PHONY: web-check
web-check: ## fail if the dashboard that is committed is not what its sources say
	$(GO) run ./internal/proof/bundle -check

.PHONY: pictures
pictures: deps build ## take the pictures of docs/pictures anew, in a real browser and on a terminal
	$(GO) test ./internal/proof/dashboard -run TestPictures -count 1 -update
	$(GO) test ./internal/cli -run TestRecording -count 1 -update

.PHONY: e2e-agents
e2e-agents: $(DEPS) build ## run real coding agents from npm to a merged pull request
	scripts/e2e-agents

.PHONY: alerts
alerts: ## have promtool judge the rules of docs/monitoring, and play their cases
	scripts/alerts

.PHONY: environments
environments: $(DEPS) build ## run the demo as root and others, with and without isolation, where folders are closed
	scripts/environments

.PHONY: offline
offline: $(DEPS) build ## run the demo, and the tests of what dials and what serves, where there is no route but to the machine itself
	scripts/offline

.PHONY: chaos
chaos: ## harm real processes for MINUTES (0.5) as SEED (1) says, and count what was lost
	$(GO) run ./cmd/yardmaster-lab chaos --minutes $(MINUTES) --seed $(SEED)

.PHONY: chaos-night
chaos-night: ## the same for ten minutes, as a new seed says each time
	$(GO) run ./cmd/yardmaster-lab chaos --minutes 10 --seed $$(date +%s)

.PHONY: conformance
conformance: $(DEPS) build ## hold the API against linters, generated clients, a validator and MCP's own clients
	scripts/conformance/run

.PHONY: fuzz
fuzz: ## fuzz every target with FUZZ_T inputs (100000x), or for a time (20s)
	@scripts/fuzz $(FUZZ_T)

.PHONY: model
model: $(DEPS) ## drive the work plane through STEPS (100000) random steps on each database
	$(GO) test ./internal/app -run TestWorkUnderDisorder -steps $(STEPS) -timeout 0 -v

.PHONY: bench
bench: ## measure against baselines in the same run; -write updates docs/benchmarks.md
	$(GO) run ./internal/proof/bench

.PHONY: bench-check
bench-check: ## the same; fails if a target is missed, with a profile of what missed it
	$(GO) run ./internal/proof/bench -check

.PHONY: clean
clean: ## remove what was built
	rm -rf yardmaster sbom.json dist
