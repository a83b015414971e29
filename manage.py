#!/usr/bin/env python
"""Django's command line for Relaybatch."""

import sys

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    from relaybatch.conf.startup import one_line_if_wrong
    from relaybatch.output import make_streams_writable

    make_streams_writable()
    with one_line_if_wrong():
        execute_from_command_line(sys.argv)
