"""Threads of the linear algebra libraries, kept from fighting each other.

with calm_threads():
    for ...:
        stepper.step(...)

A frame alternates between MKL's sparse solver and small dense algebra in OpenBLAS,
whose threads go on spinning for work after every call, on the cores the solver needs.
MKL's spin too, for 200 ms, beside everything else of the frame.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes.util import find_library

from threadpoolctl import ThreadpoolController

DENSE = ("openblas", "blis", "flexiblas")
"""Libraries that get one thread; MKL keeps what its solver is told."""


@functools.lru_cache(maxsize=1)
def find_mkl() -> ctypes.CDLL | None:
    """libmkl_rt as the mkl wheel installs it, else None.

    The environment variable PYPARDISO_MKL_RT names another place.
    """
    named = os.environ.get("PYPARDISO_MKL_RT")
    folders = (sys.prefix, sys.base_prefix, os.path.expanduser("~/.local"))
    places = [named] if named else []
    for folder in folders:
        for pattern in ("lib/*mkl_rt*", "Library/bin/*mkl_rt*"):
            places += sorted(glob.glob(os.path.join(folder, pattern)))
    if found := find_library("mkl_rt"):
        places.append(found)
    for place in places:
        try:
            library = ctypes.CDLL(place)
            library.pardiso.restype = None
        except (OSError, AttributeError):
            continue
        return library
    return None


@contextmanager
def calm_threads() -> Iterator[None]:
    """While in the `with` block: one thread of dense algebra, and none of MKL's spins.

    Once around a loop, not in it: libraries are looked up each time. Everything is as
    before afterwards.
    """
    mkl = find_mkl()
    if mkl is not None:
        mkl.MKL_Get_Max_Threads()  # loads its OpenMP
    found = ThreadpoolController()
    spins = _blocktimes(found)
    for library in spins:
        library.kmp_set_blocktime(0)
    try:
        with found.select(internal_api=list(DENSE)).limit(limits=1):
            yield
    finally:
        for library, milliseconds in spins.items():
            library.kmp_set_blocktime(milliseconds)


def _blocktimes(found):
    """How long threads of Intel's OpenMP spin [ms], by library."""
    out = {}
    for entry in found.info():
        if entry["prefix"] == "libiomp":
            library = ctypes.CDLL(entry["filepath"])
            library.kmp_get_blocktime.restype = ctypes.c_int
            out[library] = library.kmp_get_blocktime()
    return out
