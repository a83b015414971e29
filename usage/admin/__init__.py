"""Admin pages for usage events. Importing this package registers them."""

from usage.admin import usage_event

__all__ = ["usage_event"]
