"""The scripts of docs/getting-started/, as they stand on their pages, and what they print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from routing.models import Binding, Model

if TYPE_CHECKING:
    from types import SimpleNamespace

PAGES = Path(__file__).resolve().parents[3] / "docs" / "getting-started"
# By the page's heading above the script: the models it needs by adapter, and the lines that it prints among others.
DEMO_MODELS = {"openai": "demo-chat", "openai_embeddings": "demo-embeddings"}
PRINTED = {
    "Chat completions": ("completed", "first echo hello", "second echo goodbye", "third", "no-such-model"),
    "Embeddings": ("completed", "first 3 numbers", "second 3 numbers"),
}


def quick_start(page: str, heading: str, language: str) -> str:
    """The one script in `language` under the heading."""
    section = (PAGES / page).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    (script,) = re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return str(script)


def add_demo_models(catalog: SimpleNamespace) -> None:
    """The models of the demo's catalog that the scripts name."""
    for adapter, name in DEMO_MODELS.items():
        model = Model.objects.create(name=name, provider=catalog.provider)
        Binding.objects.create(model=model, host=catalog.host, adapter=adapter, pricing=catalog.pricing)


def assert_printed(heading: str, output: str) -> None:
    assert [text for text in PRINTED[heading] if text not in output] == [], output
