"""`make chaos`: inject random faults into a deployment of its own, and check docs/operating/guarantees.md.

The checks look from the outside: HTTP, rows by SQL, the payload folder, and an upstream that records every request.
Nothing here imports the code under test, and no production code imports this.
"""
