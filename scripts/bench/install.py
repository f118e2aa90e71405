"""An installation from the wheel: how long, how large, and whether it works.

    python scripts/bench/install.py               # a quarter of an hour
    python scripts/bench/install.py --installer uv
    python scripts/bench/install.py --quick       # the wheel alone, on what is here

The wheel is built from this folder and installed with all that it needs into a fresh
virtual environment, from the package cache where that is warm: run it twice. The first
page is that of docs/first_steps.md, from the empty folder on: environment, installation
and simulation; `own_robot_walks_s` is the installation, all commands of that page, and
a walk of `my_robot.urdf`. An installation works when the three commands of `make demo`
and ten files of tests do: as it is, without MKL (`works_without_mkl`); from a wheel
that was built without a compiler, on a path without one (`works_without_compiler`); and
with the newest Drake on the newest Python that is here (`works_on_newest`, which is
missing without one). The notebooks run as they are in an environment that has Jupyter
alone and a clone beside them, which their first cell installs. The quick form has none
of these, and its page is that of a brick.

JSON: wheel, install_s, install_mb, first_page_s, schema_files.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from docs_commands import blocks
from measurement import Measurement

ROOT = Path(__file__).resolve().parents[2]
PAGE = (
    "simulate hamr --gait trot --frequency 10 --surface card --cycles 5 --html a.html"
)
TESTS = """
core/test_checks core/test_installed cli/test_doctor cli/test_options fem/test_mesh
fem/test_material model/test_loops multibody/test_ground formats/read/test_tags
lattice/shape/test_check
""".split()
TARGETS = {"first_page_s": 60.0, "own_robot_walks_s": 600.0}


def timed(command: Sequence[str | Path], **more) -> float:
    """Wall time of a command that must succeed [s]; what it prints goes to stderr."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=sys.stderr, **more)
    return time.perf_counter() - began


def build(folder: Path, *, compiler: bool = True) -> Path:
    """The wheel, built from a copy without what earlier builds left."""
    source = folder / "source"
    leave = shutil.ignore_patterns("*.so", "__pycache__")
    for name in ("drakebots", "models"):
        shutil.copytree(ROOT / name, source / name, ignore=leave)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    environment = os.environ | ({} if compiler else {"CC": "false"})
    options = ["--quiet", "--no-deps", "--wheel-dir", folder]
    pip = [sys.executable, "-m", "pip", "wheel", *options, source]
    timed(pip, env=environment)
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def fresh(folder: Path, python: str) -> Path:
    """The interpreter of a new virtual environment."""
    if python == sys.executable:
        venv.create(folder, with_pip=True, symlinks=True)
    else:
        timed([python, "-m", "venv", folder])
    return folder / "bin" / "python"


def installer(python: Path, tool: str) -> list[str]:
    """The command that installs into an environment."""
    if tool == "uv":
        return ["uv", "pip", "install", "--quiet", "--python", str(python)]
    return [str(python), "-m", "pip", "install", "--quiet"]


def megabytes(folder: Path) -> float:
    """Size of all files of a folder [MB]."""
    files = (path for path in folder.rglob("*") if not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def demo() -> list[list[str]]:
    """The commands of `make demo`, without the word drakebots."""
    (recipe,) = re.findall(
        r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M
    )
    text = recipe.replace("\\\n", " ").replace("$(OUT)/", "")
    return [
        shlex.split(line)[1:] for line in text.splitlines() if "/drakebots " in line
    ]


def works(python: Path, folder: Path, environment: Mapping[str, str]) -> bool:
    """Whether the demo's commands and the tests succeed with an installation."""
    # As it is now, and without the package: what is installed is to be found.
    leave = shutil.ignore_patterns(
        ".*", "*.egg-info", "drakebots", "build", "dist", "out"
    )
    shutil.copytree(ROOT, folder, ignore=leave)
    jobs = [["drakebots", *words] for words in demo()]
    jobs.append(["pytest", *(f"tests/{name}.py" for name in TESTS)])
    for job in jobs:
        command = [python, "-m", *job]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=sys.stderr)
        if done.returncode:
            print(f"failed: {shlex.join(job)}", file=sys.stderr)
            return False
    return True


def notebooks(folder: Path, tool: str) -> dict:
    """How many notebooks of a clone a Jupyter without drakebots executes."""
    leave = shutil.ignore_patterns(
        ".git", ".venv*", "*.so", "__pycache__", "build", "out"
    )
    (clone := folder / "clone").parent.mkdir()
    shutil.copytree(ROOT, clone, ignore=leave)
    python = fresh(folder / "venv", sys.executable)
    timed([*installer(python, tool), "nbconvert", "ipykernel", "jupytext"])
    place, failed = clone / "examples" / "notebooks", []
    names = sorted(path.stem for path in place.glob("*.py"))
    for name in names:
        convert = [python, "-m", "jupytext", "--quiet", "--to", "ipynb", f"{name}.py"]
        execute = [python, "-m", "nbconvert", "--log-level", "WARN", "--execute"]
        execute += ["--to", "notebook", "--inplace", f"{name}.ipynb"]
        jobs = (subprocess.run(job, cwd=place).returncode for job in (convert, execute))
        if any(jobs):
            failed.append(name)
    return {
        "notebooks_ok_of": f"{len(names) - len(failed)} of {len(names)}",
        "notebooks_failed": failed,
    }


def first_steps(python: Path, folder: Path, environment: Mapping[str, str]) -> float:
    """Wall time of the commands of docs/first_steps.md, and of the first ones for a
    robot of one's own, which walks [s]."""
    shutil.copy(ROOT / "examples" / "my_robot.urdf", folder)
    steps, own = (
        blocks(ROOT / "docs" / f"{n}.md") for n in ("first_steps", "your_robot")
    )
    lines = [line for block in [*steps, own[0]] for line in block.commands]
    commands = [
        shlex.split(line, comments=True)[1:] for line in lines if "drakebots " in line
    ]
    run = [python, "-m", "drakebots"]
    return sum(timed([*run, *words], cwd=folder, env=environment) for words in commands)


def examined(python: Path, environment: Mapping[str, str]) -> dict:
    """What `drakebots doctor` says."""
    command = [python, "-m", "drakebots", "doctor", "--json"]
    said = subprocess.check_output(command, env=environment, stderr=sys.stderr, cwd="/")
    return json.loads(said)


def newest() -> str | None:
    """The interpreter that `.ci/newest` would take, None without one."""
    found = subprocess.run(
        [ROOT / ".ci" / "newest", "python"], capture_output=True, text=True
    )
    return found.stdout.strip() or None


def full(folder: Path, wheel: Path, tool: str) -> dict:
    """Figures of the full form."""
    found: dict = {}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    began = time.perf_counter()
    python = fresh(folder / "venv", sys.executable)
    found["install_s"] = timed([*installer(python, tool), wheel])
    timed([python, "-m", "drakebots", *PAGE.split()], cwd=folder, env=environment)
    found["first_page_s"] = time.perf_counter() - began
    walked = first_steps(python, folder, environment)
    found["own_robot_walks_s"] = found["install_s"] + walked
    found["install_mb"] = megabytes(folder / "venv")
    said = examined(python, environment)
    found |= {name: said[name] for name in ("versions", "skins", "c_parts")}
    tests = ["pytest", "hypothesis", "jsonschema"]
    timed([*installer(python, tool), *tests])
    found["works_without_mkl"] = "pardiso" not in said["skins"] and works(
        python, folder / "as_it_is", environment
    )
    if (other := newest()) is not None:
        python_2 = fresh(folder / "venv_newest", other)
        timed([*installer(python_2, tool), wheel, *tests])
        found["newest"] = examined(python_2, environment)["versions"]["drake"]
        found["works_on_newest"] = works(python_2, folder / "newest", environment)
    found |= notebooks(folder / "notebooks", tool)
    (folder / "pure").mkdir()
    pure = build(folder / "pure", compiler=False)
    timed([*installer(python, tool), "--no-deps", "--force-reinstall", pure])
    bare = environment | {"PATH": str(python.parent)}
    said = examined(python, bare)
    lacks = said["compiler"] is None and not any(said["c_parts"].values())
    found["works_without_compiler"] = lacks and works(python, folder / "bare", bare)
    return found


def quick(folder: Path, wheel: Path) -> dict:
    """Figures of the quick form: the wheel on the packages of this environment."""
    place = folder / "site"
    environment = os.environ | {"PYTHONPATH": str(place)}
    began = time.perf_counter()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    seconds = timed([*pip, "--target", place, wheel])
    page = "view brick --html a.html".split()
    timed([sys.executable, "-m", "drakebots", *page], cwd=folder, env=environment)
    found = {"install_s": seconds, "first_page_s": time.perf_counter() - began}
    said = examined(Path(sys.executable), environment)
    assert said["package"] == str(place / "drakebots"), said["package"]
    return found | {"install_mb": megabytes(place), "c_parts": said["c_parts"]}


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the benchmark; prints one JSON object, and returns it."""
    parser = Measurement(
        __doc__, quick="the wheel alone, on the packages of this Python"
    )
    parser.add_argument("--installer", choices=("pip", "uv"), default="pip")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        if arguments.quick:
            found = quick(folder, wheel)
        else:
            found = full(folder, wheel, arguments.installer)
        schemas = list((ROOT / "models" / "schemas").glob("*.json"))
        found |= {"wheel": wheel.name, "wheel_mb": wheel.stat().st_size / 1e6}
    found |= {"schema_files": len(schemas), "targets": TARGETS}
    found["installer"] = arguments.installer
    return parser.report(found)


if __name__ == "__main__":
    main()
