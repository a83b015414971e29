"""Benchmarks: each figure next to a reference, which is the same work without Relaybatch, in the same run.

`python -m bench [submit] [first_item] [throughput] [reading]`. Nothing here asserts a time: machines differ.
"""
