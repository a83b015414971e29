"""Filters of admin lists, whose values come from the query string and may be anything."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.test import RequestFactory

from batches.admin.filters import StateFilter
from relaybatch.admin.filters import ChoiceFilter, TextFilter
from routing.models import Team

Filter = TextFilter | ChoiceFilter


class NameFilter(TextFilter):
    title = parameter_name = column = "name"


class EnabledFilter(ChoiceFilter):
    title = parameter_name = "enabled"
    options = ("True", "False")


def build(filter_class: type[Filter], value: str) -> Filter:
    name = str(filter_class.parameter_name)
    model_admin = admin.site._registry[Team]
    return filter_class(RequestFactory().get("/"), {name: [value]}, Team, model_admin)


def sql(filter_class: type[Filter], value: str) -> str:
    """The filter's query of all teams; empty for no row at all."""
    rows = build(filter_class, value).queryset(RequestFactory().get("/"), Team.objects.all())
    return "" if rows.query.is_empty() else str(rows.query)


EVERYTHING = str(Team.objects.all().query)


def test_a_text_is_compared_exactly_without_blanks_at_its_ends() -> None:
    assert sql(NameFilter, " core ").endswith('"name" = core ORDER BY "routing_team"."name" ASC')


@pytest.mark.parametrize("value", ["", "  "])
def test_no_text_filters_nothing(value: str) -> None:
    assert sql(NameFilter, value) == EVERYTHING


def test_a_text_that_no_column_can_hold_matches_nothing() -> None:
    assert sql(NameFilter, "a\0b") == ""


def test_a_choice_filters_and_another_value_is_ignored() -> None:
    assert '"enabled"' in sql(EnabledFilter, "True").partition("WHERE")[2]
    assert sql(EnabledFilter, "maybe") == EVERYTHING


def test_states_are_labelled_without_underscores() -> None:
    labels = [label for _, label in build(StateFilter, "ended").lookup_choices]
    assert labels == ["in progress", "canceling", "ended"]
