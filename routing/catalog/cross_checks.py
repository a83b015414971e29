"""Checks across rows: whether a host's models, host keys and headers fit its base URL and its `auth`.

The file may change one side while the other is only in the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from routing.catalog.problems import Problem, format_name
from routing.hosts.headers import NO_AUTH, auth_header_names
from routing.hosts.url import check_upstream_name
from routing.models import Binding, Host, HostKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routing.catalog.parse import DesiredRow


@dataclass(frozen=True, slots=True)
class _Location:
    """Where a row, or a part of one, is in the file."""

    line: int
    path: str

    def problem(self, message: str) -> Problem:
        return Problem(self.line, f"{self.path}: {message}")


@dataclass(frozen=True, slots=True)
class _CheckedHost:
    """`location` is None for a row that only the database has. The same holds for the two classes below."""

    base_url: str
    auth: str
    location: _Location | None


@dataclass(frozen=True, slots=True)
class _CheckedBinding:
    model: str
    host: str
    upstream_name: str
    location: _Location | None


@dataclass(frozen=True, slots=True)
class _KeyWithoutSecret:
    """A host key without a secret."""

    name: str
    host: str
    location: _Location | None


def cross_row_problems(
    desired_rows: list[DesiredRow], lines: dict[str, int], *, with_database: bool
) -> Iterator[Problem]:
    """The problems that only several rows together have. Rows that have problems of their own are skipped.

    `lines`: the lines of the names that the file refers to, by their paths.
    """
    hosts = _hosts(desired_rows, with_database=with_database)
    for binding in _bindings(desired_rows, lines, with_database=with_database):
        yield from _name_problems(binding, hosts.get(binding.host))
    for key in _keys_without_secret(desired_rows, with_database=with_database):
        yield from _key_problems(key, hosts.get(key.host))
    for row in _rows_in(desired_rows, "hosts"):
        yield from _header_problems(row)


def _name_problems(binding: _CheckedBinding, host: _CheckedHost | None) -> Iterator[Problem]:
    location = binding.location or (host.location if host else None)
    if host is None or location is None:
        return
    try:
        check_upstream_name(host.base_url, upstream_name=binding.upstream_name)
    except ValueError as error:
        yield location.problem(
            f"model {format_name(binding.model)} on host {format_name(binding.host)}: {error}"
        )


def _key_problems(key: _KeyWithoutSecret, host: _CheckedHost | None) -> Iterator[Problem]:
    if host is None or host.auth == NO_AUTH:
        return
    if key.location is not None:
        message = f"expected value_from or value, one of them: host {format_name(key.host)} is not auth: none"
        yield key.location.problem(message)
    elif host.location is not None:
        yield host.location.problem(
            f"host_key {format_name(key.name)} has no value, as auth: none alone allows"
        )


def _header_problems(host: DesiredRow) -> Iterator[Problem]:
    """Without `auth`, the host gets none of the adapters' auth headers, since bindings of any adapter may be added."""
    reserved = auth_header_names(host.values["auth"] or "")
    for header in host.values["headers"] or ():
        if header["name"].lower() in reserved:
            message = f"{format_name(header['name'])} holds the host key: auth says which header does"
            yield _Location(header["line"], header["path"]).problem(message)


def _hosts(desired_rows: list[DesiredRow], *, with_database: bool) -> dict[str, _CheckedHost]:
    stored = Host.objects.values_list("name", "base_url", "auth") if with_database else ()
    hosts = {name: _CheckedHost(base_url, auth, None) for name, base_url, auth in stored}
    for row in _rows_in(desired_rows, "hosts"):
        base_url, auth = row.values["base_url"], row.values["auth"]
        if base_url is not None and auth is not None:
            hosts[row.name] = _CheckedHost(base_url, auth, _Location(row.line, row.path))
    return hosts


def _bindings(
    desired_rows: list[DesiredRow], lines: dict[str, int], *, with_database: bool
) -> Iterator[_CheckedBinding]:
    models = _rows_in(desired_rows, "models")
    for row in models:
        for number, binding in enumerate(row.values["bindings"] or ()):
            path = f"{row.path}.bindings[{number}]"
            location = _Location(lines.get(f"{path}.host", row.line), path)
            yield _CheckedBinding(row.name, binding["host"], binding["upstream_name"] or row.name, location)
    if with_database:
        others = Binding.objects.exclude(model__name__in=[row.name for row in models])
        for name, host, own in others.values_list("model__name", "host__name", "upstream_name"):
            yield _CheckedBinding(name, host, own or name, None)


def _keys_without_secret(
    desired_rows: list[DesiredRow], *, with_database: bool
) -> Iterator[_KeyWithoutSecret]:
    keys = _rows_in(desired_rows, "host_keys")
    for row in keys:
        if row.values["value_from"] == ("", "") and row.values["value"] is None:
            yield _KeyWithoutSecret(row.name, row.values["host"], _Location(row.line, row.path))
    if with_database:
        stored = HostKey.objects.filter(env_name="", file_path="", secret_encrypted=None).exclude(
            name__in=[row.name for row in keys]
        )
        for name, host in stored.values_list("name", "host__name"):
            yield _KeyWithoutSecret(name, host, None)


def _rows_in(desired_rows: list[DesiredRow], section: str) -> list[Any]:
    return [row for row in desired_rows if row.kind.section == section]
