"""YAML files read with every way to fail named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from drakebots.errors import FileProblem, InvalidInput


def read_yaml(path: Path, problem: type[FileProblem] = FileProblem) -> Any:
    """The parsed document of a YAML file.

    Args:
        path: the file.
        problem: raised when it cannot be read.

    Raises:
        FileProblem: as `problem`, for a file that cannot be opened or is no text,
            or is no YAML: too deeply nested, with an impossible date or number.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise problem(path, f"cannot be read: {error}") from error
    try:
        return parse_yaml(text)
    except InvalidInput as error:
        raise problem(path, str(error)) from error


def parse_yaml(text: str) -> Any:
    """The document in a text.

    Raises:
        InvalidInput: when it is no YAML, too deeply nested, or has an impossible
            date or number.
    """
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(f"is not YAML: {error}") from error
