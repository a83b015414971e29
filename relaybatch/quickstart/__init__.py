"""Everything on one machine: private servers, the demo upstream and `make run`. Imports no Django."""
