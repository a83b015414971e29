"""The one error of the quickstart."""


class QuickstartError(Exception):
    """Something the person at the keyboard can mend; the text is one line that says what and how."""
