"""Django's PostgreSQL, for processes of many threads (`ENGINE` in relaybatch/conf/database_url.py)."""
