"""A design as a folder of files that `load_skinned` and Drake's parser read."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import yaml

from drakebots.core.files import replacing
from drakebots.design.problem import Design
from drakebots.design.skeleton import write_sdf
from drakebots.fem.mesh import TetMesh
from drakebots.skin.file import Patches, ServoGains, SkinDescription, write_skin

SERVOS = ServoGains(stiffness=40.0, damping=0.6)
"""Of a servo's own control; no data sheet gives them."""


def write_design(design: Design, folder: Path | str) -> Path:
    """Writes the model; returns the SDF's path.

    NAME.sdf, NAME.drakebots.yaml, NAME.skin.yaml, skin.vtu, params.yaml and
    scene.dmd.yaml. The files depend on the design only.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = design.problem.name
    path = write_sdf(design.skeleton, folder)
    write_compressed_mesh(folder / "skin.vtu", design.shell.mesh)
    write_skin(folder / f"{name}.skin.yaml", skin_description(design))
    for file, text in (
        ("scene.dmd.yaml", _scene(name)),
        ("params.yaml", params_text(design)),
    ):
        with replacing(folder / file) as part:
            part.write_text(text)
    return path


def skin_description(design: Design) -> SkinDescription:
    """The contents of the `.skin.yaml`."""
    materials = design.materials
    return SkinDescription(
        mesh="skin.vtu",
        glue={link: tuple(map(int, ids)) for link, ids in design.glue.items()},
        material=materials[0],
        regions={k: m for k, m in materials.items() if m != materials[0]},
        servos=SERVOS,
        patches=tuple(
            Patches(sole.foot, sole.link, np.round(sole.p_BP, 9))
            for sole in design.skeleton.soles
        ),
    )


def write_compressed_mesh(path: Path, mesh: TetMesh) -> None:
    """A `.vtu` of float32 positions and int32 tets, zlib: small, the same bytes."""
    n, m = len(mesh.vertices), len(mesh.tets)
    arrays = [
        ("Points", "Float32", 3, mesh.vertices.astype("<f4")),
        ("connectivity", "Int32", 1, mesh.tets.astype("<i4")),
        ("offsets", "Int32", 1, (4 * np.arange(1, m + 1)).astype("<i4")),
        ("types", "UInt8", 1, np.full(m, 10, "u1")),
        ("region", "Int32", 1, mesh.region.astype("<i4")),
    ]
    text = {name: _data_array(name, *rest) for name, *rest in arrays}
    out = (
        '<?xml version="1.0"?>\n<VTKFile type="UnstructuredGrid" version="0.1" '
        'byte_order="LittleEndian" header_type="UInt32" '
        'compressor="vtkZLibDataCompressor">\n<UnstructuredGrid>\n'
        f'<Piece NumberOfPoints="{n}" NumberOfCells="{m}">\n'
        f"<Points>\n{text['Points']}</Points>\n"
        f"<Cells>\n{text['connectivity']}{text['offsets']}{text['types']}</Cells>\n"
        f"<CellData>\n{text['region']}</CellData>\n"
        "</Piece>\n</UnstructuredGrid>\n</VTKFile>\n"
    )
    with replacing(path) as part:
        part.write_text(out)


def _data_array(name, kind, components, values) -> str:
    raw = np.ascontiguousarray(values).tobytes()
    block = 1 << 15
    pieces = [raw[k : k + block] for k in range(0, len(raw), block)]
    packed = [zlib.compress(piece, 9) for piece in pieces]
    last = len(raw) % block
    head = struct.pack(
        f"<{3 + len(packed)}I", len(packed), block, last, *map(len, packed)
    )
    body = base64.b64encode(head).decode() + base64.b64encode(b"".join(packed)).decode()
    # A reader takes a column for a table where the number 1 is given.
    width = f' NumberOfComponents="{components}"' if components > 1 else ""
    return (
        f'<DataArray type="{kind}" Name="{name}"{width} format="binary">{body}'
        "</DataArray>\n"
    )


def _scene(name: str) -> str:
    return (
        "# The skeleton as it stands at rest; the skin is no part of it.\n"
        "directives:\n"
        "- add_model:\n"
        f"    name: {name}\n"
        f"    file: package://drakebots/{name}/{name}.sdf\n"
    )


def params_text(design: Design) -> str:
    """Every number of the design: template, skin, what was measured."""
    skin = design.problem.skin
    measured = {k: v for k, v in design.report().items() if "second" not in k}
    measured.pop("surface_to_robot_s")
    raw = {
        "name": design.problem.name,
        "template": {"kind": type(design.template).__name__} | asdict(design.template),
        "skin": asdict(skin),
        "measured": measured,
    }
    head = "# Written by drakebots.design; every number of the design, SI.\n"
    return head + yaml.safe_dump(_plain(raw), sort_keys=False, width=100)


def _plain(value):
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.9g}")
    if isinstance(value, np.integer):
        return int(value)
    return value
