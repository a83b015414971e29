from django.apps import AppConfig
from django.core.checks import register


class RoutingConfig(AppConfig):
    name = "routing"
    verbose_name = "Routing"

    def ready(self) -> None:
        from routing.checks import check_stored_secrets  # its models can be imported from now on

        register(check_stored_secrets)
