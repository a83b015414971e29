"""The usage routes. A trailing slash is optional."""

from __future__ import annotations

from django.urls import re_path

from usage import views

urlpatterns = [
    re_path(r"^v1/usage/events/?$", views.Events.as_view()),
    re_path(r"^v1/usage/summary/?$", views.Summary.as_view()),
    re_path(r"^api/usage/events/?$", views.AllEvents.as_view()),
    re_path(r"^api/usage/summary/?$", views.AllSummary.as_view()),
    re_path(r"^api/usage/timeseries/?$", views.AllTimeseries.as_view()),
]
