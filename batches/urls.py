"""The routes of batches and files. A trailing slash is optional on all of them (relaybatch.http.middleware)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import path

from batches.file_views import FileViewSet
from batches.views import BatchViewSet, MessageBatchViewSet

if TYPE_CHECKING:
    from django.urls import URLPattern


def _collection(prefix: str, views: type[BatchViewSet]) -> list[URLPattern]:
    return [
        path(prefix, views.as_view({"get": "list", "post": "create"})),
        path(f"{prefix}/<str:batch_id>", views.as_view({"get": "retrieve", "delete": "destroy"})),
        path(f"{prefix}/<str:batch_id>/results", views.as_view({"get": "results"})),
        path(f"{prefix}/<str:batch_id>/cancel", views.as_view({"post": "cancel"})),
        path(f"{prefix}/<str:batch_id>/retry", views.as_view({"post": "retry"})),
    ]


urlpatterns = [
    *_collection("v1/batches", BatchViewSet),
    *_collection("v1/messages/batches", MessageBatchViewSet),
    path("v1/files", FileViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/files/<str:file_id>", FileViewSet.as_view({"get": "retrieve", "delete": "destroy"})),
    path("v1/files/<str:file_id>/content", FileViewSet.as_view({"get": "content"})),
]
