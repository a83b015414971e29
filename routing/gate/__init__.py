"""The gate before every upstream: which host key a call takes, whether it may be sent now, and the key's breaker.

Redis decides, one script at a time, so that all workers on all machines agree.
"""
