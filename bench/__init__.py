"""Benchmarks: every figure beside its peer's, measured in the same run on the same machine."""
