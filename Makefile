# Everyday commands. `make demo` and `make test` install what is missing first, and say what they do.

CARGO ?= cargo

.PHONY: demo test check bench setup setup-test setup-bench

# The whole loop in one go: true pictures of a WebGL and a WebGPU page in ./demo-out.
demo: setup
	$(CARGO) run --release -- demo

# Everything that continuous integration holds the code to.
test: setup-test
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) test --lib --bins
	$(CARGO) test --doc
	# A test that starts a Chromium has it for itself: two beside each other on two cores miss their deadlines.
	$(CARGO) test --no-fail-fast --test '*' -- --test-threads=1
	@if command -v cargo-deny >/dev/null; then \
		$(CARGO) deny check bans licenses sources; \
	else \
		echo "skipped: the check of licenses and sources; cargo install cargo-deny --locked"; \
	fi

# For every day: no Chromium, no network.
check:
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) test --lib

# Ours beside Playwright and Puppeteer on the same Chromium; writes bench/RESULTS.md. Takes npm, and half an hour.
bench: setup-bench
	$(CARGO) build --release
	$(CARGO) run --release --example relay_bench
	$(CARGO) run --release --example proxy_bench
	# Needs root: how fast 100 MB of uploads come into a page.
	$(CARGO) test --release --test egress hundred -- --nocapture
	cd bench && npm ci --no-audit --no-fund && node run.mjs $(BENCH)

setup:
	packaging/setup.sh run

setup-test:
	packaging/setup.sh run test

setup-bench:
	packaging/setup.sh run bench
