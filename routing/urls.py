"""The routes of the catalog and of tokens. A trailing slash is optional (relaybatch.http.middleware)."""

from __future__ import annotations

from django.urls import path

from routing.token_views import TokenMint, TokenRevoke
from routing.views import ModelList

urlpatterns = [
    path("v1/models", ModelList.as_view()),
    path("api/auth/token", TokenMint.as_view()),
    path("api/auth/token/revoke", TokenRevoke.as_view()),
    path("api/auth/revoke", TokenRevoke.as_view()),
]
