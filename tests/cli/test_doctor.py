"""`drakebots doctor` and `--version`: what is installed, and what is slow and why."""

from __future__ import annotations

import json

import pytest

from drakebots.cli import doctor, main
from drakebots.core import threads
from drakebots.core.installed import version_of
from drakebots.fem.solver import fast_blas, installed_solvers
from drakebots.trajopt.solvers import kkt


def examined(capsys) -> tuple[dict, str]:
    assert main(["doctor", "--json"]) == 0
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_what_is_there(capsys):
    """The solvers that `auto` takes, the versions that are imported; one screen."""
    found, table = examined(capsys)
    assert found["versions"]["drake"] == version_of("drake") or "unknown"
    assert tuple(found["skins"]) == installed_solvers()
    assert found["c_parts"] == {
        "kkt": kkt.available(),
        "blas": fast_blas() is not None,
    }
    assert {"exact", "ipopt"} <= set(found["plans"])
    assert len(table.splitlines()) <= 30


def test_what_is_slow_and_why(capsys, monkeypatch):
    """On a machine without MKL and a compiler, and with other work."""
    monkeypatch.setattr(threads, "find_mkl", lambda: None)
    monkeypatch.setattr(doctor, "fast_blas", lambda: None)
    monkeypatch.setattr(doctor, "compiler", lambda: None)
    monkeypatch.setattr(doctor.os, "getloadavg", lambda: (64.0, 0, 0))
    monkeypatch.setattr(kkt, "library", lambda: None)
    monkeypatch.setattr(doctor.os, "access", lambda *place: False)
    found, _ = examined(capsys)
    assert found["skins"][0] in ("mumps", "scipy") and not found["cached"]
    said = "\n".join(found["slow"])
    for word in ("kkt.c", "DRAKEBOTS_COMPILE", "XDG_CACHE_HOME", "other work"):
        assert word in said
    if found["skins"][0] == "mumps":
        assert "blas.c" in said


def test_version_names_drakes(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    drake = version_of("drake") or "unknown"
    assert capsys.readouterr().out.rstrip().endswith(f", Drake {drake}")
