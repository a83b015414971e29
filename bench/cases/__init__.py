"""The benchmarks, a file each. `figures(deployment)` runs one and returns its rows of the table."""
