"""What commands do with what they have found: write files, print, exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakebots.cli.options import wanted
from drakebots.cli.output import print_json, print_report, report_of
from drakebots.models import Model
from drakebots.results import Result


def finish(args: argparse.Namespace, result: Result, model: Model | None = None) -> int:
    """Writes the files that were asked for, prints what a run came to.

    Returns:
        The exit code.
    """
    written = write_outputs(args, result, model)
    print_report(result)
    tell(args, report_of(result) | {"files": list(map(str, written))}, *written)
    return exit_code(result)


def write_outputs(
    args: argparse.Namespace, result: Result, model: Model | None = None
) -> list[Path]:
    """Writes the files of a result that were asked for."""
    return [
        entry.write(result, path, model)
        for entry, path in wanted(args)
        if entry.write is not None
    ]


def tell(args: argparse.Namespace, facts: Mapping[str, Any], *written: Path) -> int:
    """Prints the files that were written and, where it was asked for, the JSON.

    Returns:
        The exit code of success.
    """
    for path in written:
        print(path)
    if args.json:
        print_json(facts)
    return 0


def exit_code(result: Result) -> int:
    """0 for success; says on stderr why not."""
    if result.ok:
        return 0
    print(f"drakebots: {result.verdict}: {result.message}", file=sys.stderr)
    return 130 if result.verdict == "interrupted" else 1
