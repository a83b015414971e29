#!/usr/bin/env python
"""Django's command line for Relaybatch."""

import sys

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    from relaybatch.conf.startup import exit_on_bad_config
    from relaybatch.output import configure_streams

    configure_streams()
    with exit_on_bad_config():
        execute_from_command_line(sys.argv)
