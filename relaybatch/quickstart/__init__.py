"""Everything on one machine: private servers, the demo upstream and `make run`.

Only `prepare_database`, a program of its own, imports Django.
"""
