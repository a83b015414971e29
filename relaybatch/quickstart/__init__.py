"""`make run`: a demo deployment on one machine, with its own PostgreSQL and Redis (`servers/`) and upstream (`demo/`).

Only `demo.prepare_database`, which runs as a process of its own, imports Django.
"""
