"""Changes that an admin page asks about before it makes them: one dataclass and one page, `admin/confirm.html`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.template.response import TemplateResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.forms import Form
    from django.http import HttpRequest, HttpResponse

Row = TypeVar("Row")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedAction(Generic[Row, Result]):
    """An action on a row that runs after a confirmation.

    `name`: the verb, in URLs and on the button. `run(row, values)`: `values` are the confirmation form's, empty where
    there is none; it raises the use case's own error where the row does not allow the action. `log_message`: the entry
    in the row's history.
    """

    name: str
    question: str
    explanation: str
    log_message: str
    run: Callable[[Row, Mapping[str, Any]], Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedRow:
    """A row as the confirmation page lists it: a link, and what there is to know before confirming."""

    url: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What one confirmation page shows. `breadcrumb`: `(url, name)` of the row that the action was chosen on.

    `hidden_inputs`: `(name, value)` pairs that the confirming POST repeats.
    """

    title: str
    cancel_url: str
    breadcrumb: tuple[str, str] | None = None
    form: Form | None = None
    affected_rows: Sequence[AffectedRow] = ()
    hidden_inputs: Sequence[tuple[str, str]] = ()


def confirmation_page(
    request: HttpRequest,
    action: ConfirmedAction[Any, Any],
    confirmation: Confirmation,
    *,
    context: Mapping[str, Any],
) -> HttpResponse:
    """`context`: the admin site's own, with the model's `opts`."""
    values = {**context, "title": confirmation.title, "action": action, "confirmation": confirmation}
    return TemplateResponse(request, "admin/confirm.html", values)
