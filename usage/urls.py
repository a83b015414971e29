"""The usage routes."""

from __future__ import annotations

from django.urls import path

from usage import views

urlpatterns = [
    path("v1/usage/events", views.Events.as_view()),
    path("v1/usage/summary", views.Summary.as_view()),
    path("v1/usage/included", views.Included.as_view()),
    path("api/usage/events", views.AllEvents.as_view()),
    path("api/usage/summary", views.AllSummary.as_view()),
    path("api/usage/timeseries", views.AllTimeseries.as_view()),
]
