"""Mutations that keep a file's structure, so that what is behind the parser is reached.

    text = edited_xml(random, text, others=("mesh.obj",))
    tree = edited_tree(random, yaml.safe_load(text))

Each takes a `random.Random` and changes one to three things: a number becomes extreme,
a name hostile, a reference leads elsewhere; parts are left out, doubled, moved, nested.
"""

from __future__ import annotations

import base64
import copy
import json
import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from io import BytesIO
from random import Random
from typing import Any

NUMBERS = (
    *("nan", "inf", "-inf", "0", "-0.0", "-1", "1", "2", "0.5", "1e300", "-1e300"),
    *("1e-300", "1e999", "5e-324", "1e9", "-1e9", "1" + "0" * 30, "1e10", "2147483648"),
    *("18446744073709551616", "", "x", "1,5", "0x10", "1 2", "1e", "+", "٣"),
)
"""Texts in the place of a number."""

NAMES = (
    *("", " ", "x", "world", ".", "..", "/", "../../../../etc/passwd", "../secret"),
    *("/dev/zero", "/dev/stdin", "/proc/self/environ", "nan", "0", "-1", "::", "a::b"),
    *("<script>alert(1)</script>", "[red]x[/]", "$x^$", "%s%n", "${HOME}", "{x}"),
    *("é" * 40, "a" * 5000, "\u202e", "a b", "'\"", "package://none/x", "file:///etc"),
    *("http://localhost:1/x.obj", "package://drake_models/x.obj", "\\", "a\tb"),
)
"""Texts in the place of a name or of a file."""

_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def edited_number(random: Random, text: str) -> str:
    """A text with one of its numbers replaced; one of NAMES if it has none."""
    found = list(_NUMBER.finditer(text))
    if not found or random.random() < 0.15:
        return random.choice(NAMES)
    match = random.choice(found)
    near = str(-float(match[0])), f"{float(match[0]) * 1e6:g}", f"{float(match[0]):g} 7"
    new = random.choice((*NUMBERS, *near))
    return text[: match.start()] + new + text[match.end() :]


def edited_bytes(random: Random, content: bytes) -> bytes:
    """Damage that knows no structure: bits, holes, ends, insertions."""
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 3, 20))):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0 if data:
                data[min(at, len(data) - 1)] ^= 1 << random.randrange(8)
            case 1:
                del data[at : at + random.choice((1, 8, 500))]
            case 2:
                data[at:at] = random.choice((b"\0", b"\xff\xfe", b"<", b"{", b"1e999"))
            case 3:
                data[at:at] = data[at : at + random.choice((4, 100))]
            case _ if random.random() < 0.2:
                del data[at:]
    return bytes(data)


def edited_xml(random: Random, text: str, others: Sequence[str] = ()) -> bytes:
    """A changed XML text: URDF, SDF, MJCF, VTU, VXA.

    Args:
        random: of the changes.
        text: the file.
        others: files that a reference may be led to, the file itself for one.
    """
    try:
        root = ET.fromstring(text)
    except ET.ParseError:
        return edited_bytes(random, text.encode())
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        _edit_element(random, root, others)
    content = ET.tostring(root)
    if random.random() < 0.08:
        return edited_bytes(random, content)
    if random.random() < 0.03:
        bomb = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 9}">' for k in range(1, 12))
        return f'<!DOCTYPE x [<!ENTITY e0 "ha">{bomb}]>'.encode() + content.replace(
            b"=", b'="&e11;" a=', 1
        )
    return content


def _edit_element(random: Random, root: ET.Element, others: Sequence[str]) -> None:
    every = [(parent, child) for parent in root.iter() for child in parent]
    if not every:
        return
    parent, child = random.choice(every)
    keys = list(child.attrib)
    match random.randrange(13):
        case 0 | 1 | 2 | 3 if keys:
            key = random.choice(keys)
            child.set(key, edited_number(random, child.get(key, "")))
        case 0 | 1 | 2 | 3 | 4:
            child.text = edited_number(random, child.text or "")
        case 5 if keys:
            del child.attrib[random.choice(keys)]
        case 5 | 6:
            parent.remove(child)
        case 7:
            parent.append(copy.deepcopy(child))
        case 8:
            other = random.choice(every)[0]
            if child not in other.iter() and other not in child.iter():
                other.append(copy.deepcopy(child))
        case 9:
            child.tag = random.choice((*{c.tag for _, c in every}, "x", "include"))
        case 10 if keys:
            # A name of something else: a loop, a second parent, an unknown joint.
            values = [v for _, c in every for v in c.attrib.values()]
            child.set(random.choice(keys), random.choice((*values, *NAMES)))
        case 11 if others:
            named = [c for _, c in every if {"filename", "file"} & set(c.attrib)]
            for found in named[:1] or [child]:
                key = "file" if "file" in found.attrib else "filename"
                found.set(key, random.choice((*others, *NAMES)))
        case _:
            inner = child
            for _ in range(random.choice((3, 300))):
                inner = ET.SubElement(inner, child.tag, child.attrib)


def edited_tree(random: Random, tree: Any) -> Any:
    """A changed tree of mappings and lists, as YAML and JSON have."""
    tree = copy.deepcopy(tree)
    # Half of them keep what a schema asks for, to reach what is behind it.
    edit = random.choice((_edit_node, _edit_value))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        tree = edit(random, tree)
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """All mappings and lists of a tree, each with a key or an index of it."""
    found: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in pairs:
            found.append((node, key))
            if isinstance(value, dict | list):
                walk(value)

    if isinstance(tree, dict | list):
        walk(tree)
    return found


def _edit_value(random: Random, tree: Any) -> Any:
    """A number, a name or a switch becomes another; a list gets or loses a last item.

    Numbers stay numbers, names are those of the tree, lists of numbers stay as long.
    """
    places = _places(tree)
    rows = [
        (node, key)
        for node, key in places
        if isinstance(node[key], list)
        and node[key]
        and not isinstance(node[key][-1], int | float)
    ]
    if rows and random.random() < 0.2:
        node, key = random.choice(rows)
        if random.random() < 0.5:
            node[key].pop()
        else:
            node[key].append(copy.deepcopy(random.choice(node[key])))
        return tree
    leaves = [(n, key) for n, key in places if not isinstance(n[key], dict | list)]
    if not leaves:
        return tree
    node, key = random.choice(leaves)
    value = node[key]
    names = [n[k] for n, k in leaves if isinstance(n[k], str)]
    if isinstance(value, bool):
        node[key] = not value
    elif isinstance(value, int):
        node[key] = random.choice((0, 1, 2, -value, value + 1, 10 * value, 10**6))
    elif isinstance(value, float):
        scale = random.choice((0.0, -1.0, 0.5, 0.99, 1.01, 2.0, 10.0, 1e3, 1e-3, 1e9))
        node[key] = value * scale + random.choice((0.0, 0.0, 0.1, 1e-9))
    elif isinstance(value, str):
        node[key] = random.choice(names)
    return tree


def odd_value(random: Random) -> Any:
    """A value of some other type or size."""
    return random.choice(
        (
            *(None, True, 0, -1, 0.0, -0.5, 1e300, -1e300, 1e-300, 10**30, 2**63),
            *(float("nan"), float("inf"), "", "x", "1", "nan", "../secret", "../x"),
            *([], {}, [[]], [None], {"x": 1}, {"": {}}, [1, 2, 3], [[1, 2], [3]]),
            *("<script>alert(1)</script>", "a" * 3000, [1e300] * 3, [float("nan")] * 3),
            [0] * 5000,
        )
    )


def _edit_node(random: Random, tree: Any) -> Any:
    places = _places(tree)
    if not places or random.random() < 0.02:
        return odd_value(random)
    node, key = random.choice(places)
    value = node[key]
    match random.randrange(9):
        case 0 | 1:
            node[key] = odd_value(random)
        case 2 | 3 if isinstance(value, int | float) and not isinstance(value, bool):
            node[key] = random.choice((-value, 0, value * 1e6, value + 0.5, 10**12))
        case 2 | 3 if isinstance(value, str):
            node[key] = edited_number(random, value)
        case 4:
            del node[key]
        case 5 if isinstance(node, dict):
            node[random.choice(("x", "", *NAMES[:8], 1, None))] = node.pop(key)
        case 5 | 6 if isinstance(node, list):
            node.append(copy.deepcopy(value))
        case 6:
            other, at = random.choice(places)
            other[at] = copy.deepcopy(value)
        case 7:
            node[key] = [value]
        case _:
            for _ in range(random.choice((2, 60))):
                value = [value] if random.random() < 0.5 else {"x": value}
            node[key] = value
    return tree


def edited_json(random: Random, text: str) -> bytes:
    """A changed JSON text; it may hold NaN, as Python writes it."""
    if random.random() < 0.1:
        return edited_bytes(random, text.encode())
    tree = edited_tree(random, json.loads(text))
    return json.dumps(tree, default=str, skipkeys=True).encode()


def edited_table(random: Random, text: str) -> bytes:
    """A changed CSV text."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(random.choice((1, 1, 2))):
        k = random.randrange(len(rows)) if rows else 0
        row = rows[k] if rows else []
        match random.randrange(8):
            case 0 | 1 | 2 | 3 if row:
                j = random.randrange(len(row))
                row[j] = edited_number(random, row[j])
            case 4 if row:
                row.pop()
            case 5:
                row.append(random.choice(NUMBERS))
            case 6:
                rows.append(row * random.choice((1, 50)))
            case _:
                del rows[random.choice((k, 0)) :]
    content = "\n".join(",".join(row) for row in rows).encode()
    return edited_bytes(random, content) if random.random() < 0.1 else content


def edited_lines(random: Random, text: str, others: Sequence[str] = ()) -> bytes:
    """A changed text of lines, words and numbers: OBJ, STL, ASCII VTK, material."""
    lines = text.split("\n")
    for _ in range(random.choice((1, 1, 2, 5))):
        k = random.randrange(len(lines))
        match random.randrange(7):
            case 0 | 1 | 2:
                lines[k] = edited_number(random, lines[k])
            case 3:
                del lines[k]
                lines = lines or [""]
            case 4:
                lines.insert(k, random.choice(lines))
            case 5:
                word = random.choice(
                    ("mtllib", "usemtl", "map_Kd", "f", "v", "vn", "o")
                )
                lines.insert(k, f"{word} {random.choice((*others, *NAMES))}")
            case _:
                words = lines[k].split(" ")
                random.shuffle(words)
                lines[k] = " ".join(words)
    content = "\n".join(lines).encode("utf-8", "replace")
    return edited_bytes(random, content) if random.random() < 0.1 else content


def edited_stl(random: Random, content: bytes) -> bytes:
    """A changed binary STL: its count, a coordinate, its length."""
    data = bytearray(content)
    match random.randrange(4):
        case 0:
            counts = (0, 1, 2**31, 2**32 - 1, 1000)
            data[80:84] = struct.pack("<I", random.choice(counts))
        case 1 | 2:
            for _ in range(random.choice((1, 50, 3000))):
                at = 84 + 50 * random.randrange((len(data) - 84) // 50)
                odd = random.choice((float("nan"), float("inf"), 0.0, 1e30, -1e-30))
                at += 4 * random.randrange(12)
                data[at : at + 4] = struct.pack("<f", odd)
        case _:
            return edited_bytes(random, content)
    return bytes(data)


_VTK_ARRAYS = (
    (rb"POINTS \d+ double\n", ">d"),
    (rb"OFFSETS vtktypeint64\n", ">q"),
    (rb"CONNECTIVITY vtktypeint64\n", ">q"),
    (rb"CELL_TYPES \d+\n", ">i"),
)
"""The headings of a legacy VTK's arrays, and the format of a number of each."""


def edited_vtk(random: Random, content: bytes) -> bytes:
    """A changed legacy VTK: one of its headings, or numbers of its arrays."""
    data = bytearray(content)
    headings = list(re.finditer(rb"[A-Z_]{5,} [^\n]{0,80}", content))
    if random.random() < 0.15 and headings:
        found = random.choice(headings)
        new = edited_number(random, found[0].decode("latin1"))
        data[found.start() : found.end()] = new.encode("utf-8", "replace")
        return bytes(data)
    (pattern, form), *_ = random.choices(_VTK_ARRAYS, (4, 1, 3, 1))
    heading = re.search(pattern, content)
    if heading is None or random.random() < 0.1:
        return edited_bytes(random, content)
    count = int(re.search(rb"POINTS (\d+)", content)[1])  # type: ignore[index]
    size = struct.calcsize(form)
    for _ in range(random.choice((1, 10))):
        at = heading.end() + size * random.randrange(count)
        if at + size > len(data):
            continue
        (old,) = struct.unpack(form, data[at : at + size])
        if form == ">d":
            odd = (*(old * f for f in (-1.0, 0.0, 1.001, 0.9, 1e3, 1e300)), old + 1e-6)
            odd = (*odd, float("nan"), float("inf"))
        else:
            most = 2 ** (8 * size - 1) - 1
            odd = (0, -1, 1, old + 1, old - 1, count - 1, count, 10**6, most)
        data[at : at + size] = struct.pack(form, random.choice(odd))
    return bytes(data)


def edited_vtu(random: Random, text: str) -> bytes:
    """A changed VTU: its elements, or the bytes of one of its arrays."""
    if random.random() < 0.6:
        return edited_xml(random, text)
    root = ET.fromstring(text)
    arrays = [e for e in root.iter("DataArray") if (e.text or "").strip()]
    if arrays:
        chosen = random.choice(arrays)
        try:
            raw = base64.b64decode("".join((chosen.text or "").split()))
            chosen.text = base64.b64encode(edited_bytes(random, raw)).decode()
        except ValueError:
            chosen.text = edited_number(random, chosen.text or "")
    file = BytesIO()
    ET.ElementTree(root).write(file)
    return file.getvalue()
