"""Files that scripts make from parameters: written, or compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from drakebots.core.files import replacing


def made_files(
    texts: Mapping[Path, str], *, check: bool, stray: Iterable[Path] = ()
) -> int:
    """Writes what differs, atomically, and removes what is no longer made.

    Args:
        texts: what the files should hold.
        check: write nothing.
        stray: files that are no longer made.

    Returns:
        The exit code: 1 if a check found a difference.
    """
    texts = {path: with_schema(path, text) for path, text in texts.items()}
    changed = [path for path, text in texts.items() if not _holds(path, text)]
    stray = list(stray)
    for path in sorted([*changed, *stray]):
        print(("differs: " if check else "writing: ") + str(path))
    if check:
        return 1 if changed or stray else 0
    for path in stray:
        path.unlink()
    for path in changed:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            Path(part).write_text(texts[path])
    return 0


def with_schema(path: Path, text: str) -> str:
    """The text of a file in models/, with the line by which editors find its schema."""
    name = re.search(r"\.(drakebots|skin)\.yaml$", path.name)
    if name is None:
        return text
    return f"# yaml-language-server: $schema=../schemas/{name[1]}.json\n{text}"


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text
