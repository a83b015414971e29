"""`python -m relaybatch.quickstart.clean HOME`: delete a demo's data, also what had to be stored outside HOME.

Only files that a demo creates are deleted: HOME may be mistyped, or contain other files as well.
"""

import contextlib
import shutil
import sys
from pathlib import Path

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.private_servers import delete_home_data, locked_home

FOLDERS = ("logs", "payloads", "postgres")
FILES = ("catalog.json", "postgres.password", "redis.conf", "redis.pid", "secrets.json", "lock")


def main() -> None:
    home = Path(sys.argv[1]).resolve()
    if not (home / "secrets.json").is_file():
        sys.exit(f"{home} is no demo's home, nothing was removed: set RELAYBATCH_HOME to one")
    try:
        with locked_home(home):
            delete_home_data(home)
            _remove(home)
    except QuickstartError as problem:
        sys.exit(str(problem))


def _remove(home: Path) -> None:
    for name in FOLDERS:
        shutil.rmtree(home / name, ignore_errors=True)
    for name in FILES:
        (home / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it contains other files
        home.rmdir()


if __name__ == "__main__":
    main()
