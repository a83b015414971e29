"""How Relaybatch is wired: settings, urls, Celery app, quickstart.

Every process imports something of it before it reads its settings: so here the environment is put right for all.
"""

from relaybatch.conf.ignored_variables import remove_ignored_variables

remove_ignored_variables()
