"""Mutated model and result files: an error of ours, or a load; nothing else.

Readers run in a child process, so that a crash or a hang of the interpreter
fails the test instead of ending it.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drakebots.core.errors import DrakebotsError
from drakebots.formats import load
from drakebots.model import package_root
from drakebots.results import load_result
from drakebots.robots.legged import Simulation, simulate

URDF = """<robot name="leg" xmlns:drake="http://drake.mit.edu">
<link name="trunk"><inertial><origin xyz="0 0 0.01" rpy="0 0 0"/><mass value="1.5"/>
<inertia ixx="0.01" iyy="0.012" izz="0.011" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><box size="0.2 0.1 0.05"/></geometry>
<material name="grey"><color rgba="0.5 0.5 0.5 1"/></material></visual>
<collision><geometry><box size="0.2 0.1 0.05"/></geometry></collision></link>
<link name="shank"><inertial><origin xyz="0 0 -0.1"/><mass value="0.2"/>
<inertia ixx="0.001" iyy="0.001" izz="0.0002" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.01"/></geometry>
<drake:proximity_properties><drake:mu_static value="0.8"/></drake:proximity_properties>
</collision></link>
<joint name="knee" type="revolute"><parent link="trunk"/><child link="shank"/>
<origin xyz="0.05 0 -0.02" rpy="0 0.1 0"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1.5" effort="2" velocity="10"/><dynamics damping="0.01"/>
</joint>
<transmission type="SimpleTransmission"><joint name="knee"/><actuator name="knee"/>
</transmission></robot>"""

SDF = """<sdf version="1.9"><model name="cart"><link name="base"><inertial>
<mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz><ixy>0</ixy><ixz>0</ixz>
<iyz>0</iyz></inertia></inertial><collision name="c"><geometry><box>
<size>0.1 0.2 0.3</size></box></geometry></collision></link>
<link name="pole"><pose>0 0 0.4 0 0 0</pose><inertial><mass>0.3</mass><inertia>
<ixx>0.01</ixx><iyy>0.01</iyy><izz>0.001</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz>
</inertia></inertial></link><joint name="hinge" type="revolute"><parent>base</parent>
<child>pole</child><axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper>
</limit><dynamics><damping>0.1</damping><spring_stiffness>3</spring_stiffness>
<spring_reference>0</spring_reference></dynamics></axis></joint></model></sdf>"""

MJCF = """<mujoco model="arm"><worldbody><body name="a" pos="0 0 1"><joint name="j"
type="hinge" axis="0 1 0" range="-90 90"/><geom type="capsule" size="0.02 0.1"
mass="0.4"/></body></worldbody><actuator><motor name="m" joint="j"/></actuator>
</mujoco>"""

DIRECTIVES = """directives:
- add_model:
    name: leg
    file: package://drakebots/hamr/hamr.sdf
    default_free_body_pose:
        Chassis:
            translation: [0, 0, 0.02]
            rotation: !Rpy { deg: [0, 0, 10] }
"""

SIDECAR = """feet:
  F: {body: shank, p: [0, 0, -0.2], radius: 0.01}
loops:
  l: {A: trunk, p_A: [0.1, 0, 0], B: shank, p_B: [0, 0, 0], axis: [0, 1, 0]}
"""

SPICE = [
    b"nan",
    b"-1",
    b"1e999",
    b"-0",
    b"inf",
    b"1e-320",
    b"<",
    b">",
    b"/>",
    b"&amp;",
    b"\x00",
    b"\xff",
    b"'",
    b"{",
    b"<!--",
    b"../..",
    b"999999999999",
    b"<drake:nonsense/>",
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four random edits: bytes, splices, truncation, spice."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if not out:
            break
        at, kind = rng.randrange(len(out)), rng.randrange(10)
        end = min(len(out), at + rng.randint(1, 40))
        if kind == 0:
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at:end]
        elif kind == 2:
            out[at:at] = out[at:end]
        elif kind == 3:
            out[at:end] = rng.choice(SPICE)
        elif kind == 4:
            source = rng.randrange(len(out))
            out[at:at] = out[source : source + 30]
        else:
            # Numbers are where most of the meaning is.
            digits = [i for i, b in enumerate(out) if chr(b).isdigit()]
            if digits:
                out[rng.choice(digits)] = rng.choice(b"0123456789.-e")
    return bytes(out[: rng.randrange(len(out))] if rng.random() < 0.03 else out)


def _read(jobs, read, pipe, seconds) -> None:
    """In the child: reads each file; says which one, and how it went. The system ends
    it where a file takes more processor time."""
    # What Drake prints about broken files is not what is tested.
    import logging

    logging.disable(logging.CRITICAL)
    for path in jobs:
        pipe.send(("start", str(path)))
        limit = int(time.process_time() + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        try:
            read(path)
            pipe.send(("done", "loaded"))
        except DrakebotsError as error:
            text = str(error)
            pipe.send(("done", "refused" if "\n" not in text else f"lines: {text!r}"))
        except BaseException as error:
            pipe.send(("done", f"{type(error).__name__}: {error}"))
    pipe.send(("end", ""))


def survive(jobs: list[Path], read, seconds: float = 20.0) -> dict[str, int]:
    """Counts of outcomes; asserts that there is no crash, hang or other error.

    A file may take `seconds` of processor time, and ten times that on the clock, as
    other work may hold the machine.
    """
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_read, args=(jobs, read, theirs, seconds))
    child.start()
    theirs.close()
    counts, current = {"loaded": 0, "refused": 0}, None
    try:
        while True:
            assert mine.poll(10 * seconds), f"hang on {current}"
            try:
                kind, text = mine.recv()
            except EOFError:
                data = Path(current).read_bytes() if current else b""
                pytest.fail(f"crashed, or ran for {seconds} s, on {current}: {data!r}")
            if kind == "start":
                current = text
            elif kind == "done":
                assert text in counts, (text, Path(current).read_bytes())
                counts[text] += 1
            else:
                return counts
    finally:
        child.kill()
        child.join()


def read_model(path: Path) -> None:
    """Load, and step what loads."""
    model = load(path)
    if path.suffix != ".yaml":
        simulate(Simulation(model, duration=0.002))


def read_result(path: Path) -> None:
    load_result(path)


def write_mutants(folder: Path, count: int, seed: int) -> list[Path]:
    """Mutants of the five kinds of model file, in turn."""
    rng = random.Random(seed)
    kinds = [
        (".urdf", URDF),
        (".sdf", SDF),
        (".xml", MJCF),
        (".dmd.yaml", DIRECTIVES),
        (".urdf", None),
    ]
    jobs = []
    for k in range(count):
        ending, text = kinds[k % len(kinds)]
        path = folder / f"m{k}{ending}"
        if text is None:  # a good model with a bad YAML beside it
            path.write_text(URDF)
            sidecar = folder / f"m{k}.drakebots.yaml"
            sidecar.write_bytes(mutate(SIDECAR.encode(), rng))
        else:
            path.write_bytes(mutate(text.encode(), rng))
        jobs.append(path)
    return jobs


def test_unmutated_files_load(tmp_path):
    """The seeds are good files; else the fuzzing would test nothing."""
    for ending, text in ((".urdf", URDF), (".sdf", SDF), (".xml", MJCF)):
        path = tmp_path / f"good{ending}"
        path.write_text(text)
        read_model(path)
    path = tmp_path / "good.dmd.yaml"
    path.write_text(DIRECTIVES)
    read_model(path)


@pytest.mark.long
def test_mutated_models(tmp_path):
    """A hundred mutants."""
    counts = survive(write_mutants(tmp_path, 100, seed=1), read_model)
    assert counts["refused"] > 20
    assert counts["loaded"] > 5


@pytest.mark.slow
def test_many_mutated_models(tmp_path):
    """Two thousand mutants, and two hundred of HAMR's own file."""
    jobs = write_mutants(tmp_path, 2000, seed=2)
    rng = random.Random(3)
    hamr = (package_root() / "hamr" / "hamr.sdf").read_bytes()
    for k in range(200):
        jobs.append(tmp_path / f"hamr{k}.sdf")
        jobs[-1].write_bytes(mutate(hamr, rng))
    counts = survive(jobs, read_model)
    assert sum(counts.values()) == 2200
    assert counts["refused"] > 400


@pytest.mark.slow
@settings(
    max_examples=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(kind=st.sampled_from([".urdf", ".sdf", ".xml"]), rng=st.randoms())
def test_hypothesis_mutants(tmp_path, kind, rng):
    """Mutants drawn (and shrunk on failure) by hypothesis, in this process."""
    text = {".urdf": URDF, ".sdf": SDF, ".xml": MJCF}[kind]
    path = tmp_path / f"m{kind}"
    path.write_bytes(mutate(text.encode(), rng))
    try:
        read_model(path)
    except DrakebotsError as error:
        assert "\n" not in str(error)
        assert path.name in str(error)


@pytest.mark.slow
def test_many_mutated_results(tmp_path):
    """A thousand mutants of a result file."""
    good = tmp_path / "box.urdf"
    good.write_text(URDF)
    result = simulate(Simulation(good, duration=0.05))
    data = result.save(tmp_path / "good.nc").read_bytes()
    rng = random.Random(4)
    jobs = []
    for k in range(1000):
        jobs.append(tmp_path / f"r{k}.nc")
        jobs[-1].write_bytes(mutate(data, rng))
    counts = survive(jobs, read_result)
    assert counts["refused"] > 950
