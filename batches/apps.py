from django.apps import AppConfig
from django.core.checks import register
from django.db.models.signals import post_migrate


class BatchesConfig(AppConfig):
    name = "batches"
    verbose_name = "Batches"

    def ready(self) -> None:
        import batches.dialects  # noqa: F401 -- registers the dialects' traits, which every process needs
        from batches.checks import (
            check_payload_directory,
            check_payload_fallback,
            check_payload_url,
            check_worker_lost,
        )
        from batches.viewer_group import create_viewer_group

        register(check_payload_directory)
        register(check_payload_fallback)
        register(check_payload_url)
        register(check_worker_lost)
        # After the receiver of django.contrib.auth, which creates the permissions: it is earlier in INSTALLED_APPS.
        post_migrate.connect(create_viewer_group, sender=self, dispatch_uid="batches.viewer_group")
