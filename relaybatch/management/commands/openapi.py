"""`manage.py openapi`: the OpenAPI document as YAML. Reads the settings, and connects to nothing in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from django.core.management.base import BaseCommand

from relaybatch.api_docs.document import document

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """What occurs twice is written twice: anchors are hard to read."""
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Several lines as several lines."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_PlainDumper.add_representer(str, _represent_text)


class Command(BaseCommand):
    help = "Write the OpenAPI document of the service as YAML."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--file", type=Path, help="where to; standard output when left out")

    def handle(self, *args: Any, **options: Any) -> None:
        text = document_as_yaml()
        if options["file"]:
            options["file"].write_text(text, encoding="utf-8")
        else:
            self.stdout.write(text, ending="")


def document_as_yaml() -> str:
    return yaml.dump(document(), Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=110)
