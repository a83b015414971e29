"""Names shared by the demo and `prepare_database`, which runs as a process of its own."""

ADMIN_NAME = "admin"
ADMIN_PASSWORD_VARIABLE = "DEMO_ADMIN_PASSWORD"
RELAY_KEY_VARIABLE = "DEMO_RELAY_KEY"
