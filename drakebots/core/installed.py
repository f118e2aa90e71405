"""What is installed: packages of others, our C parts, and what hides Drake.

    writer = extra("mcap.writer")  # the module, or one line that says how to get it
    library = c_part(Path(__file__).with_name("_kkt"))

What decides here is what `drakebots doctor` prints.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import platform
import re
import sys
import sysconfig
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from drakebots.core.errors import DrakebotsError, InvalidInput
from drakebots.core.lazy import show_dask

LOG = logging.getLogger(__name__)

# --- packages -------------------------------------------------------------------

EXTRAS = {
    "mkl": "skins by PARDISO, in 0.6 to 0.7 of the time of MUMPS (x86-64; 0.9 GB)",
    "distributed": "sweeps on a cluster of dask",
    "gymnasium": "environments for reinforcement learning",
    "mcap": "logs for Foxglove",
    "rosbags": "logs of ROS",
    "xacrodoc": "xacro files of ROS",
    "cadquery": "STEP files of designed robots",
}
"""Packages that are not required, by their names on PyPI: what each is for."""


PACKAGES = {"skimage": "scikit-image", "collada": "pycollada", "yaml": "pyyaml"}
"""Names on PyPI of modules that are called otherwise."""


def version_of(package: str) -> str | None:
    """The installed version of a package, None without one that pip knows of."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def extra(module: str) -> ModuleType:
    """A module of one of the :data:`EXTRAS`.

    Raises:
        InvalidInput: when its package is not installed; says how to install it.
    """
    show_dask()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        raise InvalidInput(
            f"{EXTRAS[package]}: needs {package}; pip install {package}"
        ) from error


# --- our C parts ----------------------------------------------------------------


def c_part(stem: Path, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL | None:
    """A library that was compiled when drakebots was installed, or None without it.

    Its name is `stem` with ".so" on every platform and for every Python.

    Args:
        stem: its path without the ending.
        mode: how it is opened.
    """
    # Before 0.2 the names had Python's version; of two the plain one is newer.
    for path in sorted(stem.parent.glob(f"{stem.name}*.so"), reverse=True):
        try:
            return ctypes.CDLL(str(path), mode=mode)
        except OSError:  # compiled for another machine
            continue
    LOG.info("%s.c was not compiled; `drakebots doctor` says what it is for", stem.name)
    return None


def function_of(module: Any, name: str) -> int:
    """The address of one of SciPy's functions of BLAS and LAPACK.

    Args:
        module: `scipy.linalg.cython_blas` or `cython_lapack`.
        name: of the function, "dgemm".
    """
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = module.__pyx_capi__[name]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


# --- Drake ----------------------------------------------------------------------

FIRST_PYTHON, FIRST_GLIBC = (3, 11), (2, 34)
"""The oldest for which there is a wheel of a Drake that drakebots takes."""

WHEELS = (
    "Python 3.11 and newer with the lock (GIL), on Linux with glibc 2.34 and newer "
    "(Ubuntu 22.04, Debian 12, RHEL 9), x86-64 and aarch64, and on macOS, arm64"
)


class Missing(DrakebotsError, ModuleNotFoundError):
    """A package that cannot be imported: why not, and the remedy."""


def explain(error: ImportError) -> None:
    """Raises Missing where it is known what keeps a package from being imported.

    Args:
        error: what the import of any module raised.
    """
    if isinstance(error, DrakebotsError):
        return
    if why := _why_no_drake(str(error)):
        raise Missing(f"Drake cannot be imported: {why}") from error
    name = (error.name or "drakebots").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and name != "drakebots":
        package = PACKAGES.get(name, name)
        raise Missing(f"{name} is missing; pip install {package}") from error


def _why_no_drake(said: str) -> str | None:
    libc, version = platform.libc_ver()
    if wanted := re.search(r"`GLIBC_([\d.]+)' not found", said):
        return (
            f"it needs glibc {wanted[1]}, and this system has {version or 'another'}; "
            "use Ubuntu 22.04, Debian 12 or newer, or a container with one of them"
        )
    own = os.path.join("pydrake", "common")
    home = next((f for f in sys.path if os.path.isdir(os.path.join(f, own))), None)
    for name in ("pydrake", "drake"):
        spec = PathFinder.find_spec(name)
        for place in (
            spec.submodule_search_locations or [spec.origin or ""] if spec else ()
        ):
            if place and home != os.path.dirname(place):
                return (
                    f"{os.path.abspath(place)} hides its package of that name; rename "
                    "that, or start Python in another folder"
                )
    here = sys.version_info[:2]
    python = "Python " + ".".join(map(str, here))
    if home is not None:
        wheel = next(iter(metadata.distributions(name="drake", path=[home])), None)
        tag = re.search(r"-?cp3(\d+)-(\w+)", (wheel and wheel.read_text("WHEEL")) or "")
        made = (3, int(tag[1])) if tag else here
        if here == made or (tag and tag[2] == "abi3" and here > made):
            return None
        return f"that in {home} is for Python 3.{made[1]}, this is {python}; install it"
    old = sys.platform == "linux" and (
        libc != "glibc" or tuple(map(int, version.split("."))) < FIRST_GLIBC
    )
    if here < FIRST_PYTHON or old or sysconfig.get_config_var("Py_GIL_DISABLED"):
        system = f"{python} on {sysconfig.get_platform()} {libc} {version}".strip()
        return f"it has no wheel for {system}; it has for {WHEELS}"
    return "it is not installed for this Python; pip install drake"
