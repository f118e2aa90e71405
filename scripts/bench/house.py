"""Layout of the code: its size, circles, imports against the floors.

python scripts/bench/house.py
python scripts/bench/house.py --quick    # measures no time
python scripts/bench/house.py --tests    # runs and times `make test` as well

`drakebots/` is read as text, not imported; the processor time of `drakebots --help` is
that of processes of its own.

A line of code is no docstring, comment, import or blank. `upward_strings` are rooms
further down that a room names as text, "drakebots.room.module:name", and imports later.
`field_declarations` are the places at which one field is declared, `option_bag_fields`
the fields of the largest problem. tests/house holds limits of these figures, which only
fall.

JSON: code_lines, modules, single_importer_modules, functions_over_60_lines,
field_declarations, option_bag_fields, circles, upward_imports, upward_strings,
largest_folder_files.
"""

from __future__ import annotations

import ast
import io
import re
import resource
import subprocess
import sys
import time
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measurement import Measurement, figure

ROOT = Path(__file__).resolve().parents[2]

FLOORS = (
    *("core", "results", "model", "fem", "lattice", "multibody", "formats", "view"),
    "live",
    *(
        "skin",
        "trajopt",
        "control",
        "plots",
        "identify",
        "design",
        "robots",
        "sweeps",
        "envs",
        "cli",
    ),
)
"""Rooms in order: a room imports only from those before it."""

TARGETS = {
    "code_lines": 47_000,
    "modules": 380,
    "single_importer_modules": 45,
    "functions_over_60_lines": 40,
    "field_declarations": 1,
    "option_bag_fields": 14,
    "circles": 0,
    "upward_imports": 0,
    "upward_strings": 0,
    "largest_folder_files": 16,
    "help_cpu_s": 0.3,
    "test_wall_s": 300,
}


@dataclass
class House:
    """The modules of a package and what they import.

    Attributes:
        files: by module.
        imports: modules that a module needs, through faces to where names are
            defined; faces themselves need nothing.
        texts: the `from` part of every import as written, by module.
        inner: imports inside functions, as (module, line).
        strings: "module:name" that are written as text, to be imported later.
        code_lines: lines of code of each module; see :func:`code_lines`.
        long_functions: functions of more than 60 lines, with their number.
        classes: the classes with their modules, by name.
    """

    files: dict[str, Path]
    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    texts: dict[str, list[tuple[str, str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    inner: list[tuple[str, int]] = field(default_factory=list)
    faces: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    strings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    code_lines: dict[str, int] = field(default_factory=dict)
    long_functions: dict[str, int] = field(default_factory=dict)
    classes: dict[str, tuple[str, ast.ClassDef]] = field(default_factory=dict)

    def is_package(self, module: str) -> bool:
        """Whether a module is a folder."""
        return self.files[module].name == "__init__.py"


def read_house(root: Path = ROOT, package: str = "drakebots") -> House:
    """Reads all modules of a package in a checkout."""
    files = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    house = House(files)
    texts = {name: path.read_text() for name, path in files.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    for name, tree in trees.items():
        house.code_lines[name] = code_lines(texts[name], tree)
        _count(house, name, tree)
        if house.is_package(name):
            house.faces[name] = _face(tree)
    for name, tree in trees.items():
        for node, inside in _statements(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                _note(house, name, node, inside)
    return house


def _count(house: House, name: str, tree: ast.Module) -> None:
    named = re.compile(rf"{name.partition('.')[0]}(\.\w+)+:\w+")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if length > 60:
                house.long_functions[f"{name}:{node.name}"] = length
        elif isinstance(node, ast.ClassDef):
            house.classes[f"{name}:{node.name}"] = (name, node)
        elif isinstance(getattr(node, "value", None), str) and named.fullmatch(
            node.value
        ):
            house.strings[name].add(node.value)


def code_lines(text: str, tree: ast.Module) -> int:
    """Number of lines that are no docstring, comment, import or blank."""
    code: set[int] = set()
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
    empty += (tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in empty:
            code.update(range(token.start[0], token.end[0] + 1))
    for node, _ in _statements(tree):
        prose = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if prose or isinstance(node, ast.Import | ast.ImportFrom):
            code.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(code)


def _face(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Public names of a room: the module each comes from, and its name there."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for entry in node.names:
                found[entry.asname or entry.name] = (node.module, entry.name)
    return found


def _statements(tree: ast.Module) -> Iterable[tuple[ast.stmt, bool]]:
    """Every statement, and whether it stands in a function."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(node, part, ()):
                if isinstance(child, ast.stmt):
                    yield child, inside
                stack.append((child, inside))


def _note(house: House, name: str, node: ast.AST, inside: bool) -> None:
    pairs = []
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        pairs = [(node.module, entry.name) for entry in node.names]
    elif isinstance(node, ast.Import):
        pairs = [(entry.name, "") for entry in node.names]
    for module, entry in pairs:
        if module.partition(".")[0] != name.partition(".")[0]:
            continue
        house.texts[name].append((module, entry, node.lineno))
        if inside:
            house.inner.append((name, node.lineno))
        if house.is_package(name) and name != name.partition(".")[0] + ".cli":
            continue  # a face needs nothing until a name of it is used
        found = _home(house, module, entry)
        if found != name:
            house.imports[name].add(found)


def _home(house: House, module: str, entry: str) -> str:
    """The module that defines a name which is imported from another."""
    while True:
        if f"{module}.{entry}" in house.files and entry not in house.faces.get(
            module, {}
        ):
            return f"{module}.{entry}"
        if entry not in house.faces.get(module, {}):
            return module
        module, entry = house.faces[module][entry]


def room_of(module: str) -> str:
    """The room on a floor: "fem" of drakebots.fem.mesh.io."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def upward_imports(house: House) -> list[str]:
    """Imports of a room further down the list, and of one robot by another."""
    found = []
    for name, needed in sorted(house.imports.items()):
        for other in sorted(needed):
            a, b = room_of(name), room_of(other)
            if a in FLOORS and b in FLOORS and FLOORS.index(b) > FLOORS.index(a):
                found.append(f"{name} imports {other}")
            robots = [m.split(".")[2] for m in (name, other) if m.count(".") > 2]
            if a == b == "robots" and len(robots) == 2 and robots[0] != robots[1]:
                found.append(f"{name} imports {other}: robots never do")
    return found


def upward_strings(house: House) -> list[str]:
    """Names of rooms further down the list, written as text."""
    found = []
    for name, texts in sorted(house.strings.items()):
        for text in sorted(texts):
            a, b = room_of(name), room_of(text.partition(":")[0])
            if a in FLOORS and b in FLOORS and FLOORS.index(b) > FLOORS.index(a):
                found.append(f"{name} names {text}")
    return found


def past_faces(house: House) -> list[str]:
    """Imports of a room's inside from outside of it; core's modules are its face.

    Rooms are those of the floors and single robots; within one, folders are private to
    no one.
    """
    found = []
    for name, texts in sorted(house.texts.items()):
        for module, _, line in texts:
            if module not in house.files or house.is_package(module):
                continue
            theirs = _owner(house, module)
            if module.count(".") > 1 and theirs not in ("core", _owner(house, name)):
                found.append(f"{name}:{line} imports {module} past its face")
    return sorted(set(found))


def _owner(house: House, module: str) -> str:
    """The room of a module; the robot, where robots have rooms of their own."""
    parts = module.split(".")
    own = ".".join(parts[:3])
    in_robot = parts[1:2] == ["robots"] and own in house.files and house.is_package(own)
    return ".".join(parts[1 : 3 if in_robot and len(parts) > 2 else 2])


def circles(house: House) -> list[list[str]]:
    """Groups of modules that need one another (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in house.imports.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in house.files:
        if name not in index:
            visit(name)
    return found


def room_circles(house: House) -> list[list[str]]:
    """Groups of rooms (folders of any depth) that need one another."""
    rooms = House({_package(house, name): path for name, path in house.files.items()})
    for name, needed in house.imports.items():
        mine = _package(house, name)
        for other in needed:
            theirs = _package(house, other)
            nested = (mine + ".").startswith(theirs + ".") or (theirs + ".").startswith(
                mine + "."
            )
            if not nested:
                rooms.imports[mine].add(theirs)
    return circles(rooms)


def _package(house: House, name: str) -> str:
    return name if house.is_package(name) else name.rpartition(".")[0]


def single_importers(house: House) -> list[str]:
    """Modules that one module of the same folder imports, and nothing else does.

    Faces do not count: they import nothing until a name of theirs is used.
    """
    by: dict[str, set[str]] = defaultdict(set)
    for name, needed in house.imports.items():
        for other in needed:
            by[other].add(name)
    return sorted(
        name
        for name, users in by.items()
        if len(users) == 1
        and not house.is_package(name)
        and next(iter(users)).rpartition(".")[0] == name.rpartition(".")[0]
    )


def declarations(house: House) -> dict[str, int]:
    """The places that declare the fields of classes which check them, by class.

    One is the annotation with its rule. Another are entries under "Attributes:" of the
    docstring, a third calls `check(self, ...)` of rules that know nothing of it.
    """
    found = {}
    for name, (_, node) in house.classes.items():
        if not any("checked" in ast.unparse(mark) for mark in node.decorator_list):
            continue
        listed = any(
            f"    {own}:" in (ast.get_docstring(node) or "") for own in _fields(node)
        )
        calls = [
            keyword.value
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "check"
            for keyword in call.keywords
            if keyword.arg in _fields(node)
        ]
        names = [{n.id for n in ast.walk(v) if isinstance(n, ast.Name)} for v in calls]
        own = {
            n.id
            for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        } | {"self"}
        found[name] = 1 + listed + any(not (used & own) for used in names)
    return found


def bags(house: House) -> dict[str, int]:
    """The number of fields of each class that checks them, inherited ones included."""
    found = {}
    for name, (module, node) in house.classes.items():
        if any("checked" in ast.unparse(mark) for mark in node.decorator_list):
            found[name] = len(set(_all_fields(house, module, node)))
    return found


def _fields(node: ast.ClassDef) -> list[str]:
    entries = [e for e in node.body if isinstance(e, ast.AnnAssign)]
    return [e.target.id for e in entries if isinstance(e.target, ast.Name)]


def _all_fields(house: House, module: str, node: ast.ClassDef) -> Iterable[str]:
    yield from _fields(node)
    for base in node.bases:
        place = next(
            (m for m, entry, _ in house.texts[module] if entry == ast.unparse(base)),
            module,
        )
        home = _home(house, place, ast.unparse(base))
        found = house.classes.get(f"{home}:{ast.unparse(base)}")
        if found is not None:
            yield from _all_fields(house, *found)


def largest_folder(house: House) -> tuple[str, int]:
    """The folder with most files, and how many."""
    counts: Mapping[str, int] = defaultdict(int)
    for path in house.files.values():
        counts[str(path.parent)] += 1  # type: ignore[index]
    return max(counts.items(), key=lambda item: item[1])


def figures(house: House) -> dict[str, int]:
    """Figures that are counted."""
    return {
        "code_lines": sum(house.code_lines.values()),
        "modules": len(house.files),
        "single_importer_modules": len(single_importers(house)),
        "functions_over_60_lines": len(house.long_functions),
        "field_declarations": max(declarations(house).values(), default=0),
        "option_bag_fields": max(bags(house).values(), default=0),
        "circles": len(circles(house)),
        "upward_imports": len(upward_imports(house)),
        "upward_strings": len(upward_strings(house)),
        "largest_folder_files": largest_folder(house)[1],
    }


def least_seconds(*words: str, runs: int = 3) -> float:
    """Least processor time of a command line of drakebots [s]."""
    command = [sys.executable, "-m", "drakebots", *words]
    return min(cpu_seconds(command) for _ in range(runs))


def cpu_seconds(command: Sequence[str]) -> float:
    """Processor time of a command in a process of its own [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def main(argv: Sequence[str] | None = None) -> dict:
    """Measures; prints a table and one JSON object, and returns it."""
    parser = Measurement(__doc__, quick="measure no time")
    parser.add_argument("--tests", action="store_true", help="also time `make test`")
    parser.add_argument("--list", action="store_true", help="name what is counted")
    args = parser.parse_args(argv)
    house = read_house()
    lists = {
        "circles": [" <-> ".join(group) for group in circles(house)],
        "room circles": [" <-> ".join(group) for group in room_circles(house)],
        "upward imports": upward_imports(house),
        "past faces": past_faces(house),
        "single importers": single_importers(house),
        "upward strings": upward_strings(house),
        "long functions": [f"{k} {n}" for k, n in sorted(house.long_functions.items())],
    }
    values: dict[str, float] = dict(figures(house))
    if not args.quick:
        values["help_cpu_s"] = least_seconds("--help")
        values["show_hamr_cpu_s"] = least_seconds("show", "hamr")
        # The start of a command that plans, with a form for any robot.
        values["plan_help_cpu_s"] = least_seconds("plan", "robot.urdf", "--help")
    if args.tests:
        began = time.perf_counter()
        subprocess.run(["make", "test"], cwd=ROOT, check=True, stdout=sys.stderr)
        values["test_wall_s"] = time.perf_counter() - began
    if args.list:
        for title, rows in lists.items():
            print(f"{title}: {len(rows)}", *rows, sep="\n  ")
    result = {}
    for name, value in values.items():
        unit = "s" if name.endswith("_s") else "1"
        target = {"show_hamr_cpu_s": 2.0, **TARGETS}.get(name)
        result[name] = figure(value, unit, target)
        print(f"{name:28} {value:10.4g}   target {target}")
    return parser.report(result)


if __name__ == "__main__":
    main()
