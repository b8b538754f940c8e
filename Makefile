# make demo   the main job, on examples/
# make test   everything that must hold; installs what it needs
# make bench  the figures of docs/performance.md

GO         ?= go
NPM_DIR    := .cache/npm
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZ       ?= 60000

.PHONY: build demo test lint unit fuzz bench search npm clean

build: bin/callsheet

bin/callsheet: $(shell find . -name '*.go' -not -name '*_test.go' -not -path './.cache/*') go.mod
	$(GO) build -o bin/callsheet ./cmd/callsheet

demo: build npm
	./examples/demo.sh

test: lint npm unit fuzz

lint:
	@fmt="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$fmt" ]; then echo "gofmt: $$fmt"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

# The race detector makes what is exhaustive (every byte, every kill) take many
# times as long, so that runs once without it, and in short with it. The tests of
# the command line start its binary some thousand times, which under the detector
# takes a second each: a choice of them runs so.
RACED := TestScripts/(run|approvals|agent|rehearse)$$

unit:
	CALLSHEET_NPM=$(CURDIR)/$(NPM_DIR) $(GO) test -timeout 20m ./...
	CALLSHEET_NPM=$(CURDIR)/$(NPM_DIR) $(GO) test -race -short -timeout 20m $$($(GO) list ./... | grep -v /cmd/)
	$(GO) test -race -short -timeout 20m -run '$(RACED)' ./cmd/callsheet

# Each fuzz target on its own: go test takes one at a time.
fuzz:
	./.ci/fuzz $(FUZZ)

bench:
	$(GO) run ./bench/report

# A longer search for a call that slips through the shipped policy.
SEARCH ?= 10000000
search:
	CALLSHEET_SEARCH=$(SEARCH) $(GO) test -v -timeout 6h -run FiguresSearch ./policy/figures

# The real MCP servers of the tests and the demo. Without node they are left
# out, and the tests that want them say so.
npm: $(NPM_DIR)/.done

$(NPM_DIR)/.done: tool/mcp/testdata/npm/package.json
	@mkdir -p $(NPM_DIR)
	@if command -v npm >/dev/null; then cp $< $(NPM_DIR)/ && npm install --prefix $(NPM_DIR) --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error && touch $@; \
	else echo "npm is not here: the tests against real MCP servers will be skipped"; fi

clean:
	rm -rf bin .cache
