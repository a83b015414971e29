"""A proxy in front of a real Redis that answers chosen commands itself, with any bytes.

with RedisProxy(settings.REDIS_URL) as proxy:    # processes use proxy.url
    proxy.answer(READONLY, commands=WRITES)       # these, from now on, on connections that are open too
    proxy.wait_for_answers(3)
    proxy.forward()
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from tests.support.proxies.tcp_proxy import TcpProxy
from tests.support.servers.deployment import wait_until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import BinaryIO

READONLY = b"-READONLY You can't write against a read only replica.\r\n"
BUSY = b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"
NOREPLICAS = b"-NOREPLICAS Not enough good replicas to write.\r\n"
MISCONF = (
    b"-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n"
)
OOM = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
NOAUTH = b"-NOAUTH Authentication required.\r\n"
WRONGPASS = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
NOPERM = b"-NOPERM User default has no permissions to run this command\r\n"
CLUSTERDOWN = b"-CLUSTERDOWN The cluster is down\r\n"
MASTERDOWN = b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"
MAXCLIENTS = b"-ERR max number of clients reached\r\n"
UNBLOCKED = b"-UNBLOCKED force unblock from blocking operation, instance state changed\r\n"
UNKNOWN = b"-ERR nobody knows this one\r\n"
ERROR_REPLIES = {
    name: reply for name, reply in sorted(globals().items()) if isinstance(reply, bytes) and name.isupper()
}
INVALID_REPLIES = {
    "no protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no number": b":many\r\n",
    "no length": b"$long\r\n",
    "no count": b"*some\r\n",
    "a number": b":7\r\n",
    "a word": b"+QUEUED\r\n",
    "nothing": b"_\r\n",
    "nested without end": b"*1\r\n" * 5000,
    "an empty list": b"*0\r\n",
    "a list of one": b"*1\r\n:7\r\n",
    "a list of two": b"*2\r\n:7\r\n:7\r\n",
    "a list of four": b"*4\r\n:7\r\n:7\r\n:7\r\n:7\r\n",
    "a queue of its own": b"*2\r\n$5\r\nitems\r\n$9\r\nno reply!\r\n",
    "a message of its own": b"*2\r\n$5\r\nitems\r\n$2\r\n{}\r\n",
}
WRITES = frozenset({"BRPOP", "LPUSH", "EVALSHA", "EVAL", "SET", "DEL", "MULTI", "EXEC"})


class RedisProxy(TcpProxy):
    """`answers`: how many commands it has answered itself since the last call of `answer`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        super().__init__((str(parts.hostname), int(parts.port or 6379)))
        login, _, _ = parts.netloc.rpartition("@")
        netloc = f"{login}@127.0.0.1:{self.port}"
        self.url = urlunsplit(parts._replace(netloc=netloc))
        self.answers = 0
        self._replies: Iterator[bytes] | None = None
        self._commands: frozenset[str] = frozenset()
        self._answered: set[socket.socket] | None = None

    def answer(
        self, *replies: bytes, commands: frozenset[str] = frozenset(), on_new_connections: bool = True
    ) -> None:
        """Answer with the replies in turn; only `commands`, or all if it is empty."""
        self.answers, self._commands = 0, commands
        self._answered = None if on_new_connections else set(self._sockets)
        self._replies = itertools.cycle(replies)

    def forward(self) -> None:
        self._replies = None

    def wait_for_answers(self, count: int) -> None:
        wait_until(lambda: self.answers >= count, lambda: f"{self.answers} answers")

    def from_client(self, client: socket.socket, server: socket.socket) -> None:
        with client.makefile("rb") as sent:
            while command := _read_command(sent):
                replies = self._replies
                if replies is not None and self._is_ours(client, command):
                    self.answers += 1
                    client.sendall(next(replies))
                else:
                    server.sendall(command)

    def _is_ours(self, client: socket.socket, command: bytes) -> bool:
        is_named = not self._commands or _name(command) in self._commands
        return is_named and (self._answered is None or client in self._answered)


def _read_command(sent: BinaryIO) -> bytes:
    """The bytes of one command: an array of bulk strings."""
    command = head = sent.readline()
    for _ in range(int(head[1:] or 0)):
        length = sent.readline()
        command += length + sent.read(int(length[1:]) + 2)
    return command


def _name(command: bytes) -> str:
    return command.split(b"\r\n", 3)[2].decode().upper()
