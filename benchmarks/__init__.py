"""Measures what the service promises, on the machine at hand: python -m benchmarks.run."""
