"""What Sphinx needs to know of this repository.

* The reference: one page a face of `drakebots`, with every public name of it. The
  pages are written into docs/reference/ (not in git) before Sphinx reads its sources.
* The notebooks of examples/notebooks/ (jupytext's percent format) as pages, written
  into docs/notebooks/ (not in git).
* Docstrings: what is indented in them is code, a diagram or an equation.
* Formulas as MathML, which browsers draw themselves: no scripts from the network.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from dataclasses import is_dataclass
from functools import cache
from html import escape
from pathlib import Path

import jupytext
from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from drakebots.core.fields import declared
from drakebots.core.lazy import public_names

ROOT = Path(__file__).parents[1]
log = logging.getLogger(__name__)


@cache
def faces() -> dict[str, dict[str, tuple[str, str]]]:
    """By package or module: its public names, with the module and name of each there.

    The packages that list a face, outermost first, and the modules of core.
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for path in sorted(ROOT.glob("drakebots/**/__init__.py"), key=_depth):
        package = ".".join(path.relative_to(ROOT).parent.parts)
        source = path.read_text()
        names = public_names(ast.parse(source)) if "lazy_face(" in source else {}
        if names or path.parent.parent.name == "drakebots":
            found[package] = names
    for path in sorted((ROOT / "drakebots" / "core").glob("[a-z]*.py")):
        module = f"drakebots.core.{path.stem}"
        found[module] = {name: (module, name) for name in _defined(path)}
    return found


def _depth(path: Path) -> tuple[int, Path]:
    return len(path.parts), path


def _defined(path: Path) -> list[str]:
    """The public names that a module defines at its top."""
    names: list[str] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [t.id for t in targets if isinstance(t, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def write_reference(app: Sphinx) -> None:
    """Writes the pages of the reference."""
    shown: dict[tuple[str, str], str] = {}  # by place: where it is documented in full
    pages = {
        f"{face}.rst": face_page(face, names, shown) for face, names in faces().items()
    }
    _write(ROOT / "docs" / "reference", pages)


def face_page(face: str, names: dict[str, tuple[str, str]], shown: dict) -> str:
    """The page of a face, in reStructuredText; `shown` gains what it tells in full."""
    # A face may have a function of the name of an inner face: then that is the object.
    outer, _, last = face.rpartition(".")
    clash = outer and not inspect.ismodule(
        getattr(importlib.import_module(outer), last, None)
    )
    parts = [f"{face}\n{'=' * len(face)}", f".. automodule:: {face}\n   :no-members:"]
    parts[1] += "\n   :no-index:" * bool(clash)
    package = importlib.import_module(face)
    for name in sorted(names, key=str.lower):
        value = getattr(package, name)
        full = f"{face}.{name}"
        if inspect.ismodule(value):
            parts.append(f".. same:: {full} module {value.__name__}")
            continue
        kind = "class" if inspect.isclass(value) else "data"
        kind = "function" if inspect.isroutine(value) else kind
        # A face may show what another face shows too; it is documented once.
        place = _place(value, *names[name])
        if place in shown:
            if kind == "class" and full == ".".join(place):
                continue  # autodoc makes that an entry of the index
            parts.append(f".. same:: {full} {kind} {shown[place]}")
            continue
        shown[place] = full
        if kind == "data":
            parts.append(_constant(full, value, *place))
            continue
        if value.__name__ != name:
            shown[place] = ".".join(place)
            parts.append(f".. same:: {full} {kind} {shown[place]}")
        parts.append(f".. auto{kind}:: {shown[place]}")
    inner = "".join(f"\n   {other}" for other in faces() if _face_around(other) == face)
    parts += [f".. toctree::\n   :caption: Inside\n{inner}"] if inner else []
    return "\n\n".join(parts) + "\n"


def _face_around(face: str) -> str:
    """The innermost face that a face is inside of."""
    outer = face.rpartition(".")[0]
    return outer if outer in faces() or not outer else _face_around(outer)


def _place(value: object, home: str, name: str) -> tuple[str, str]:
    """Where a value is defined: the module, and its name there."""
    if inspect.isclass(value) or inspect.isroutine(value):
        return getattr(value, "__module__", home), getattr(value, "__name__", name)
    while True:  # a constant: through the faces to the module that has it
        path = ROOT / Path(*home.split("."), "__init__.py")
        names = public_names(ast.parse(path.read_text())) if path.exists() else {}
        if name not in names:
            return home, name
        home, name = names[name]


def _constant(full: str, value: object, module: str, name: str) -> str:
    """A constant with the text below its definition; autodoc shows its type's."""
    text = repr(value)
    lines = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name), [])
    value = f"\n   :value: {text}" if len(text) < 70 and "\n" not in text else ""
    body = "".join(f"   {line}\n" for line in plain(lines))
    face, _, name = full.rpartition(".")
    return f".. py:data:: {name}\n   :module: {face}{value}\n\n{body}".rstrip()


class Same(SphinxDirective):
    """`.. same:: NAME KIND OTHER`: an entry of the index that leads to another."""

    required_arguments = 3

    def run(self) -> list[nodes.Node]:
        name, kind, other = self.arguments
        python = self.env.domains.python_domain
        role = ":doc:" if kind == "module" else ":py:obj:"
        line = f"`{name}`: see {role}`{other}`."
        target = nodes.target("", "", ids=[name])
        if name not in python.objects:
            # As an alias it does not make references by its last name ambiguous.
            kind = "data" if kind == "module" else kind
            python.note_object(name, kind, name, aliased=True, location=target)
        text, messages = self.parse_inline(line)
        return [target, nodes.paragraph(line, "", *text), *messages]


def mark_code(app: Sphinx, what, name, value, options, lines: list[str]) -> None:
    """Reads a docstring as plain text, before napoleon turns sections into fields."""
    if what == "module":  # whose code has lost its indent where all below is code
        lines[:] = value.__doc__.splitlines()
    lines[:] = plain(lines)


def skip_fields(app: Sphinx, what, name, value, skip, options) -> bool | None:
    """Leaves out fields that the docstring of their class tells (core/fields.py)."""
    data = app.env.temp_data
    module = sys.modules.get(data.get("autodoc:module", ""))
    owner = getattr(module, data.get("autodoc:class", ""), None)
    found = declared(owner).get(name) if is_dataclass(owner) else None
    return True if found is not None and found.text else None


def plain(lines: list[str]) -> list[str]:
    """Makes code and what is indented, but for sections, literal; escapes | and *.

    Code may stand at the margin: the formatter puts it there where nothing else follows
    the first line.
    """
    marked: list[str] = []
    above, inside, code = "", False, False  # last line at the margin; in which block
    for before, line in zip(["", *lines], lines):
        first = not before.strip()
        if first and line.strip() and not (code and line.startswith(" ")):
            code = bool(_CODE.fullmatch(line))
        if code:
            line = f"    {line}"
        if line.strip() and not line.startswith(" "):
            above, inside = line, False
        elif line.startswith("    ") and first and not inside:
            inside = code or not _SECTION.fullmatch(above)
            if inside:
                marked += ["" if above.endswith("::") else "::", ""]
        marked.append(line if inside else _MARK.sub(r"\\\g<0>", line))
    return marked


_CODE = re.compile(
    r"from [\w.]+ import .*|(def|with) .*:( *#.*)?|\w[\w, ]* = .+|print\(.*\)"
)
_SECTION = re.compile(r"[A-Z][a-z]+:|[-*] .*|\d+\. .*")
_MARK = re.compile(r"(?:\||(?<=\S)\*|\*(?=\S))(?=(?:[^`]*`[^`]*`)*[^`]*$)")
"""A | or * that is neither inside backticks nor the point of a list."""


def write_notebooks(app: Sphinx) -> None:
    """Writes each notebook as a page; links between notebooks then lead to pages."""
    pages = {}
    for path in (ROOT / "examples" / "notebooks").glob("*.py"):
        cells = jupytext.read(path, fmt="py:percent").cells
        texts = [
            cell.source
            if cell.cell_type == "markdown"
            else f"```python\n{cell.source}\n```"
            for cell in cells
        ]
        page = re.sub(r"(\]\(\w+)\.py\)", r"\1.md)", "\n\n".join(texts))
        source = f"This page is a notebook: [{path.name}](../{_NOTEBOOKS}{path.name})."
        pages[f"{path.stem}.md"] = f"{page}\n\n{source}\n"
    _write(ROOT / "docs" / "notebooks", pages)


_NOTEBOOKS = "../examples/notebooks/"


def _write(folder: Path, pages: dict[str, str]) -> None:
    """Writes pages into a folder of nothing else; what is as it was keeps its date."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def inline_math(self, node: nodes.math) -> None:
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def block_math(self, node: nodes.math_block) -> None:
    formula = _mathml(node, as_block=True)
    self.body.append(f'<div style="padding: 0.4em 0">{formula}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, as_block: bool) -> str:
    text = re.sub(r"\\dots(?![a-z])", r"\\ldots", node.astext())
    try:
        return tex2mathml(text, as_block=as_block)
    except MathError as error:
        log.warning("formula %r: %s", text, error, location=node)
        return escape(text)


def adapt(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leads links to notebooks to their pages."""
    if docname.count("/") == 1:
        source[0] = re.sub(rf"{_NOTEBOOKS}(\w+)\.py", r"notebooks/\1.md", source[0])


def finish(app: Sphinx, error: Exception | None) -> None:
    """Checks that the reference is whole, and leads from / to the front page."""
    if error or app.builder.format != "html":
        return
    found = {entry[0] for entry in app.env.get_domain("py").get_objects()}
    for face, names in faces().items():
        for name in names:
            if f"{face}.{name}" not in found:
                log.warning("the reference lacks %s.%s", face, name)
    front = f'<meta http-equiv="refresh" content="0; url={app.config.root_doc}.html">'
    (Path(app.outdir) / "index.html").write_text(front + "\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("same", Same)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", write_notebooks)
    app.connect("source-read", adapt)
    # Before napoleon, which turns sections into fields.
    app.connect("autodoc-process-docstring", mark_code, priority=100)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
