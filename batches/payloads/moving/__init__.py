"""Moving payloads from one store to another while the deployment serves (docs/operating/payload-stores.md)."""
