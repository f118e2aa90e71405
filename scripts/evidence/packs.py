"""Where packs of real measurements lie, which are never in the repository; without a
command."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

from drakebots.core.errors import InvalidInput

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def add_pack(parser, name: str) -> None:
    """Adds the positional argument of a pack's folder to a command line."""
    parser.add_argument(
        "data",
        nargs="?",
        type=Path,
        help=f"folder of the data, or the pack real/{name} itself ($DRAKEBOTS_DATA)",
    )


def pack_folder(name: str, given: Path | None, files: Iterable[str]) -> Path:
    """The folder of a pack: given, below $DRAKEBOTS_DATA, or beside the checkout.

    Raises:
        InvalidInput: in one line, where one of the files is missing.
    """
    root = Path(given or os.environ.get("DRAKEBOTS_DATA") or BESIDE)
    for folder in (root, root / name, root / "real" / name):
        if all((folder / file).is_file() for file in files):
            return folder
    raise InvalidInput(
        f"no {', '.join(files)} in {root / 'real' / name}; give the folder of the "
        "data as the first argument or as $DRAKEBOTS_DATA"
    )


def read_rows(path: Path) -> list[dict]:
    """The rows of a CSV file, with numbers as floats, and empty entries as NaN."""

    def value(text: str) -> float | str:
        try:
            return float(text or "nan")
        except ValueError:
            return text

    with path.open(newline="") as file:
        return [{k: value(v) for k, v in row.items()} for row in csv.DictReader(file)]
