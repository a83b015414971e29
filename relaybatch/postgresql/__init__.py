"""Django's PostgreSQL, for processes of many threads (`ENGINE` in relaybatch/databases.py)."""
