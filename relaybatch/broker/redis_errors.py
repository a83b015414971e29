"""What an outage of Redis raises.

It cannot be reached; or refuses, being a replica, full, loading, busy with a script, not told the new password, ...; or
answers what was not asked.
"""

from redis.exceptions import RedisError

# Where a reply is not what the protocol or the command says, redis-py and kombu break off with errors of Python's own.
INVALID_REPLY_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
REDIS_UNAVAILABLE = (RedisError, OSError, *INVALID_REPLY_ERRORS)
