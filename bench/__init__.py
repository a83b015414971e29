"""How fast, and at what cost: each figure beside what the same work takes when done bare, in the same run.

`python -m bench [submit] [first_item] [throughput] [reading]`. Nothing here asserts a time: machines differ.
"""
