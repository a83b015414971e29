"""Every route of the service."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, re_path

from relaybatch import health
from relaybatch.http import error_views

urlpatterns = [
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("", include("routing.urls")),
    path("", include("usage.urls")),
    path("", include("batches.urls")),
    re_path(r"^(?!admin/|static/)", error_views.unknown_route),
]

handler400 = error_views.bad_request
handler403 = error_views.permission_denied
handler404 = error_views.page_not_found
handler500 = error_views.server_error
