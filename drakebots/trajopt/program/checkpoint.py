"""Checkpoints: the best iterate of a running solver on disk, to resume from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from drakebots.core.errors import FileProblem, one_line
from drakebots.core.files import replacing
from drakebots.trajopt.program.program import Program


def _signature(program: Program) -> str:
    groups = {name: list(g.shape) for name, g in program.variables.items()}
    return json.dumps({"name": program.name, "variables": groups})


def save_checkpoint(
    path: str | Path, program: Program, x: np.ndarray, **more: np.ndarray | str
) -> None:
    """Writes an iterate atomically (NumPy .npz).

    Args:
        path: file to write.
        program: program of which x is an iterate.
        x: the iterate (num_variables,).
        more: what else the file is to hold, by name; see :func:`read_arrays`.

    Raises:
        FileProblem: when the file cannot be written.
    """
    with replacing(path) as part, open(part, "wb") as file:
        np.savez(file, x=np.asarray(x), program=_signature(program), **more)


def read_checkpoint(path: str | Path) -> tuple[np.ndarray, str]:
    """The iterate of a checkpoint, and the signature of its program.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    arrays = read_arrays(path)
    return arrays["x"], str(arrays["program"])


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Everything a checkpoint holds, by name: "x", "program" (the program's signature,
    a JSON text), and what was saved with them.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.array(file[name]) for name in file.files}
            return arrays | {
                "x": arrays["x"].astype(float),
                "program": arrays["program"],
            }
    except FileNotFoundError:
        raise FileProblem(path, "no such checkpoint; check the name") from None
    except (OSError, ValueError, KeyError, EOFError, TypeError) as error:
        raise FileProblem(
            path, "is not a checkpoint; give a file that --checkpoint wrote"
        ) from error
    except Exception as error:  # zipfile.BadZipFile and its kin
        raise FileProblem(
            path, f"is damaged ({one_line(error)}); start without --resume"
        ) from error


def program_name(path: str | Path) -> str:
    """The name of a checkpoint's program.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    try:
        return str(json.loads(read_checkpoint(path)[1])["name"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileProblem(
            path, "is not a checkpoint; its program has no name"
        ) from error


def belongs(path: str | Path, program: Program) -> bool:
    """Whether a checkpoint is one of this program.

    Raises:
        FileProblem: for a file that is missing, damaged or not a checkpoint.
    """
    x, found = read_checkpoint(path)
    return found == _signature(program) and x.shape == (program.num_variables,)


def load_checkpoint(path: str | Path, program: Program) -> np.ndarray:
    """The iterate of a checkpoint of the same program.

    Raises:
        FileProblem: for a file that is missing, damaged, or of a program with
            other variables.
    """
    if not belongs(path, program):
        raise FileProblem(
            path,
            f"belongs to another program than {program.name}; start without --resume",
        )
    return read_checkpoint(path)[0]
