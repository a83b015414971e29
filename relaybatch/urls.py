"""Every route of the service."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from relaybatch import health
from relaybatch.api_docs import views as api_docs
from relaybatch.http import error_views
from relaybatch.http.read_only import read_only

urlpatterns = [
    path("", read_only(RedirectView.as_view(pattern_name="docs"))),
    path("admin", read_only(RedirectView.as_view(pattern_name="admin:index"))),
    path("admin/", admin.site.urls),
    path("docs", api_docs.docs_page, name="docs"),
    path("openapi.json", api_docs.openapi_json, name="openapi"),
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
