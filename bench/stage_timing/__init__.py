"""Wall and processor time of a worker by stage, measured inside of it: `python -m bench stages`. For engineers."""
