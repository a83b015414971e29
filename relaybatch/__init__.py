"""The wiring of Relaybatch: settings, URLs, HTTP floor, database floor, Celery app, web server, quickstart.

Every process imports this package before it reads its settings, so the environment is cleaned here for all of them.
"""

from relaybatch.conf.ignored_variables import remove_ignored_variables

remove_ignored_variables()
