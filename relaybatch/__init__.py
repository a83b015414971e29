"""How Relaybatch is wired: settings, urls, Celery app, quickstart."""
