from tests.acceptance.conftest import catalog, deployment, web

__all__ = ["catalog", "deployment", "web"]
