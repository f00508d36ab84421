"""Speed of the kit, as ratios within one run: `python -m tests.benchmarks` (docs/performance.md)."""
