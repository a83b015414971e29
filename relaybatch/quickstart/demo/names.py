"""What the demo and the process that prepares its database agree on."""

ADMIN_NAME = "admin"
ADMIN_PASSWORD_VARIABLE = "DEMO_ADMIN_PASSWORD"
RELAY_KEY_VARIABLE = "DEMO_RELAY_KEY"
