"""The gate before every upstream: which key a call takes, whether it may go now, and what its answer says of the key.

Decided in Redis, by one script at a time, so that all workers on all machines agree.
"""
