"""Exceptions that mean an outage of Redis.

Redis cannot be reached; or it answers with an error (a replica, out of memory, loading, busy with a script, a changed
password, ...); or its reply is not one to the command.
"""

from redis.exceptions import RedisError

# For a reply that violates the protocol or does not fit the command, redis-py and kombu raise Python's own exceptions.
INVALID_REPLY_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
REDIS_UNAVAILABLE = (RedisError, OSError, *INVALID_REPLY_ERRORS)
