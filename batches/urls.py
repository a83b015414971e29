"""The batch routes. A trailing slash is optional on all of them (relaybatch.middleware)."""

from __future__ import annotations

from django.urls import path

from batches.views import BatchViewSet, MessageBatches

urlpatterns = [
    path("v1/batches", BatchViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/batches/<str:batch_id>", BatchViewSet.as_view({"get": "retrieve", "delete": "destroy"})),
    path("v1/batches/<str:batch_id>/results", BatchViewSet.as_view({"get": "results"})),
    path("v1/batches/<str:batch_id>/cancel", BatchViewSet.as_view({"post": "cancel"})),
    path("v1/batches/<str:batch_id>/retry", BatchViewSet.as_view({"post": "retry"})),
    path("v1/messages/batches", MessageBatches.as_view()),
]
