test:
	cargo test
