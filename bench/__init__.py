"""Benchmarks: each figure next to a reference, which is the same work without Relaybatch, in the same run.

`python -m bench [names…]` runs those of `bench/cases`. Nothing here asserts a time: machines differ.
"""
