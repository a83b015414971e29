"""Django's generic admin and form classes with their type parameters, which exist for type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.paginator import Paginator
from django.forms.models import BaseInlineFormSet

if TYPE_CHECKING:
    AnyModelAdmin = admin.ModelAdmin[Any]
    AnyTabularInline = admin.TabularInline[Any, Any]
    AnyModelForm = forms.ModelForm[Any]
    AnyInlineFormSet = BaseInlineFormSet[Any, Any, Any]
    AnyPaginator = Paginator[Any]
else:
    AnyModelAdmin = admin.ModelAdmin
    AnyTabularInline = admin.TabularInline
    AnyModelForm = forms.ModelForm
    AnyInlineFormSet = BaseInlineFormSet
    AnyPaginator = Paginator

__all__ = ["AnyInlineFormSet", "AnyModelAdmin", "AnyModelForm", "AnyPaginator", "AnyTabularInline"]
