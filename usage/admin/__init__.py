"""The admin's pages for usage; importing this registers them."""

from usage.admin import events

__all__ = ["events"]
