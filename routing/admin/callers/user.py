"""The users' pages: Django's own, with the project and the policy that a user calls under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin

from relaybatch.admin.autocomplete import AutocompleteMixin
from routing.models import User

if TYPE_CHECKING:
    AnyUserAdmin = DjangoUserAdmin[Any]
else:
    AnyUserAdmin = DjangoUserAdmin


@admin.register(User)
class UserAdmin(AutocompleteMixin, AnyUserAdmin):
    fieldsets = (*DjangoUserAdmin.fieldsets, ("Calls", {"fields": ("project", "policy")}))  # type: ignore[misc]
    list_display = ("username", "project", "policy", "is_active", "is_staff")
    list_filter = ("is_active", "is_staff", "is_superuser")
    list_select_related = ("project", "policy")
    autocomplete_fields = ("project", "policy")
    show_full_result_count = False
