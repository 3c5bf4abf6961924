"""Benchmarks: each module has a `main()` that prints what it measured, ratios always from one run."""
