"""Loaded by Python at its start when this folder is on PYTHONPATH: a machine whose kernel has no IPv6."""

import errno
import os
import socket

_socket = socket.socket


class WithoutIPv6(_socket):
    def __init__(self, family=-1, *rest, **others):
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        super().__init__(family, *rest, **others)


socket.socket = WithoutIPv6
