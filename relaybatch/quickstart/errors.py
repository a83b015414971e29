"""The error of the quickstart."""


class QuickstartError(Exception):
    """An error that the user can fix; its text is one line that says what is wrong and how to fix it."""
