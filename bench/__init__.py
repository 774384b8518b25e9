"""Benchmarks: every figure is a ratio measured in one run against a limit or a peer. `make bench`."""
