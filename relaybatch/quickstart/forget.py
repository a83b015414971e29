"""`python -m relaybatch.quickstart.forget HOME`: remove a demo's data, wherever it had to be kept."""

import shutil
import sys
from pathlib import Path

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers import forget_home, locked_home


def main() -> None:
    home = Path(sys.argv[1]).resolve()
    try:
        with locked_home(home):
            forget_home(home)
            shutil.rmtree(home)
    except QuickstartError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
