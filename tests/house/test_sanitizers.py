"""kkt.c and blas.c under the address and undefined-behaviour sanitizers.

Both are compiled anew with -fsanitize, put in the place of the compiled ones in a copy
of the package, and their own tests run so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.scripts import BENCH, ROOT, find_script

FLAGS = (
    *("-g", "-O1", "-fPIC", "-shared", "-fno-omit-frame-pointer"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
PARTS = {
    "drakebots/trajopt/solvers/_kkt": ("kkt.c", "embed.c", "ma27.c"),
    "drakebots/fem/solver/_blas": ("blas.c",),
}
BROKEN = """
#include <stdlib.h>
int broken(int n) { int *x = malloc(4 * n); int y = x[n]; free(x); return y; }
"""


def _runtimes() -> str:
    """The sanitizers' libraries, to be loaded before Python's; skips without them."""
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no gcc, whose sanitizers are used")
    found = []
    for name in ("libasan.so", "libubsan.so"):
        command = [compiler, f"-print-file-name={name}"]
        path = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if not os.path.isabs(path):
            pytest.skip(f"gcc has no {name}")
        found.append(path)
    return ":".join(found)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """A folder with the package and the sanitized parts, and an environment for it."""
    runtimes, folder = _runtimes(), tmp_path_factory.mktemp("sanitized")
    leave = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "drakebots", folder / "drakebots", ignore=leave)
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "drakebots" / "_models").symlink_to(ROOT / "models")
    ending = sysconfig.get_config_var("EXT_SUFFIX")
    for target, names in PARTS.items():
        out = folder / f"{target}{ending}"
        sources = [ROOT / Path(target).parent / name for name in names]
        subprocess.run(["gcc", *FLAGS, *sources, "-o", out, "-lm"], check=True)
    environment = os.environ | {
        "LD_PRELOAD": runtimes,
        # Python and its libraries keep what they allocate until the end.
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": f"{folder}:{BENCH}",
        "OMP_NUM_THREADS": "1",
        # CasADi opens what compiles functions as it opens IPOPT, see below.
        "DRAKEBOTS_COMPILE": "0",
    }
    return folder, environment


def _run(sanitized, *command):
    folder, environment = sanitized
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
def test_the_sanitizers_see_what_is_wrong(sanitized):
    folder, _ = sanitized
    (folder / "broken.c").write_text(BROKEN)
    command = ["gcc", *FLAGS, "broken.c", "-o", "broken.so"]
    subprocess.run(command, cwd=folder, check=True)
    run = _run(sanitized, "-c", "import ctypes; ctypes.CDLL('./broken.so').broken(5)")
    assert run.returncode and "heap-buffer-overflow" in run.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "module, words, least",
    [
        # CasADi opens IPOPT in a way (RTLD_DEEPBIND) that the sanitizers refuse.
        ("trajopt/solvers/test_kkt.py", "not mumps and not threads and not work", 8),
        ("fem/test_solver.py", "one_triangle or whatever_its_memory", 27),
    ],
)
def test_the_parts_pass_their_tests_so(sanitized, module, words, least):
    code = (
        "import sys, pytest; from drakebots.fem.solver import mumps\n"
        "from drakebots.trajopt.solvers import kkt\n"
        "assert kkt.available() and mumps.fast_blas() is not None\n"
        "print(kkt.__file__); sys.exit(pytest.main(sys.argv[1:]))"
    )
    options = ("-q", "-s", "-p", "no:cacheprovider", "--import-mode=importlib")
    options += ("-c", "/dev/null", "--rootdir", ".", "-k", words, f"tests/{module}")
    run = _run(sanitized, "-c", code, *options)
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    assert str(sanitized[0]) in run.stdout
    assert int(run.stdout.rsplit(" passed", 1)[0].split()[-1]) >= least


@pytest.mark.long
@pytest.mark.parametrize("item", ["kkt", "blas"])
def test_random_structures_pass_so(sanitized, item):
    script = find_script("poisoned.py")
    run = _run(sanitized, str(script), "--child", item, "answers.npz", "none")
    assert run.returncode == 0, run.stderr[-4000:]
    with np.load(sanitized[0] / "answers.npz") as file:
        arrays = [file[name] for name in file.files]
    assert len(arrays) > 5
    assert all(np.isfinite(x).all() for x in arrays)
