"""Loaded by Python at its start when this folder is on PYTHONPATH: a machine whose clock is SKEW_SECONDS off.

Everything that Python code can ask for the time of day is moved; the monotonic clock is not, as on a real machine.
"""

import datetime
import os
import time

SKEW = float(os.environ.get("SKEW_SECONDS", "0"))
_time, _time_ns, _datetime = time.time, time.time_ns, datetime.datetime

time.time = lambda: _time() + SKEW
time.time_ns = lambda: _time_ns() + int(SKEW * 1e9)


class _Meta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _datetime)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, _datetime)


class Skewed(_datetime, metaclass=_Meta):
    @classmethod
    def now(cls, tz=None):
        return _datetime.now(tz) + datetime.timedelta(seconds=SKEW)

    @classmethod
    def utcnow(cls):
        return _datetime.utcnow() + datetime.timedelta(seconds=SKEW)


datetime.datetime = Skewed
