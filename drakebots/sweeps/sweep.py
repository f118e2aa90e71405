"""Solves one problem over many values, keeps every result, and makes one table.

    over = {"frequency": (2, 10, 30), "surface": ("card", "teflon")}
    table = sweep(hamr.GaitProblem(), over, out="out")
    table.data.stride_mm.sel(frequency=10, surface="card")
    load_result(f"out/{table.data.file.sel(frequency=10, surface='card').item()}")

Each case's result is a file in the folder, named by the case's key and written whole or
not at all. What a folder has is not computed again: a sweep that was killed goes on,
and one with more values adds to it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from drakebots.core.checks import check_value, whole
from drakebots.core.errors import InvalidInput, ResultProblem
from drakebots.core.files import check_output, claimed, make_folder, replacing
from drakebots.core.run import Progress, Verdict, ended_by, saving
from drakebots.core.stages import spent, timed
from drakebots.core.threads import cores
from drakebots.plots import AS_NAMED
from drakebots.results import Result, load_result, provenance
from drakebots.robots import find_task
from drakebots.sweeps.cases import Case, label_of, make_cases, unit_of
from drakebots.sweeps.workers import Job, Outcome, run_here, run_on_cluster

KIND = "sweep"

OWN = ("verdict", "message", "file", "wall_time", "processor_time", "time")
"""Arrays that every table has; a field or a metric cannot have their names."""


@timed("sweep")
def sweep(
    problem: Any,
    over: Mapping[str, Sequence[Any]],
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    scheduler: Any = None,
    progress: Progress | None = None,
) -> Result:
    """Solves a problem for all combinations of values.

    A case that fails does not stop the others. Ctrl-C ends the sweep and returns the
    table of what there is. A case whose run raised has no result, and is tried again
    by the next sweep in the same folder.

    Args:
        problem: of any registered robot, e.g. `hamr.Simulation()`.
        over: values by field of the problem; "weights.near" is a field of a field.
        out: folder of the results (made if missing) and of the table, `sweep.nc` and
            `sweep.csv`; None to keep the table only.
        workers: number of processes, by default as many as this process may use cores.
            Each has one thread where there are several.
        scheduler: address of a dask scheduler, or a `distributed.Client`, to solve the
            cases there instead (`pip install distributed`).
        progress: called as progress("cases", done, number).

    Returns:
        A result of kind "sweep". Its data have one dimension a field; `verdict`,
        `message`, `file`, `wall_time`, `processor_time` and every metric that is a
        number or a text are arrays over them, NaN or "" where a case has none. Success
        if every case is one.

    Raises:
        UnknownName, InvalidInput: for a field, a value or a problem that is none,
            before any work.
        FileProblem: when the folder cannot be written, or another sweep writes to it.
    """
    run = find_task(problem).run
    cases = make_cases(problem, over)
    count = check_value("workers", cores() if workers is None else workers, whole(1))
    with ExitStack() as stack:
        spare = stack.enter_context(tempfile.TemporaryDirectory())
        folder = make_folder(spare if out is None else out)
        check_output(folder / "sweep.nc")
        stack.enter_context(claimed([folder / "sweep.nc"]))
        own, stopped = _Sweep(problem, cases, folder), False
        try:
            own.solve(run, scheduler or count, progress)
        except KeyboardInterrupt as error:
            stopped = True
            ended_by(error)
            # A file may be there of which nobody could tell any more.
            own.outcomes = own.stored() | own.outcomes
        table = own.table(stopped)
        if out is not None:
            with saving():
                table.save(folder / "sweep.nc")
                with replacing(folder / "sweep.csv") as part:
                    table.data.drop_vars("time").to_dataframe().to_csv(part)
    return table


class _Sweep:
    """The cases of a sweep, the folder of their results, and what they came to.

    Attributes:
        outcomes: by the number of the case, of those that are done.
        found: number of results that the folder had.
    """

    def __init__(self, problem: Any, cases: Sequence[Case], folder: Path):
        self.problem, self.cases, self.folder = problem, cases, folder
        self.outcomes = self.stored()
        self.found = len(self.outcomes)

    def stored(self) -> dict[int, Outcome]:
        """Outcomes of the cases whose results are in the folder, whole."""
        found = {}
        for k in range(len(self.cases)):
            with suppress(ResultProblem):  # not there, or damaged: make it (again)
                result = load_result(self._path(k))
                found[k] = Outcome.of(result, sum(result.timings.values()), np.nan)
        return found

    def _path(self, k: int) -> str:
        return str(self.folder / f"{self.cases[k].key}.nc")

    def solve(self, run: str, where: Any, progress: Progress | None) -> None:
        """Adds the outcomes of the cases that have none, each as soon as it is kept.

        `where` is the number of processes of this machine, or a cluster's scheduler,
        from which results come back.
        """
        count, here = len(self.cases), isinstance(where, int)
        missing = [k for k in range(count) if k not in self.outcomes]
        jobs = [
            Job(run, self.cases[k].problem, self._path(k) if here else None)
            for k in missing
        ]
        solved = run_here(jobs, where) if here else run_on_cluster(jobs, where)
        report = progress or (lambda *_: None)
        with closing(solved):
            report("cases", len(self.outcomes), count)
            for at, outcome in solved:
                if outcome.result is not None:  # which came back from a cluster
                    outcome.result.save(self._path(missing[at]))
                    outcome = replace(outcome, result=None)
                self.outcomes[missing[at]] = outcome
                report("cases", len(self.outcomes), count)

    def table(self, stopped: bool) -> Result:
        """One row a case, those that are not done included."""
        problem, cases, outcomes = self.problem, self.cases, self.outcomes
        found, missing = self.found, Outcome("missing", "not computed")
        rows = [outcomes.get(k, missing) for k in range(len(cases))]
        bad = [k for k, row in enumerate(rows) if row.verdict != Verdict.SUCCESS]
        verdict, message = Verdict.SUCCESS, f"{len(cases)} cases, {found} found"
        if stopped:
            verdict = Verdict.INTERRUPTED
            message = (
                f"{len(outcomes)} of {len(cases)} cases are done; sweep again to go on"
            )
        elif bad:
            verdict = Verdict.FAILED
            message = (
                f"{len(bad)} of {len(cases)} cases are no success; "
                f"{cases[bad[0]].label}: {rows[bad[0]].message}"
            )
        named = [row for row in rows if row.model]
        kind = type(problem).__qualname__
        options = {"problem": kind, "keys": [case.key for case in cases]}
        return Result(
            kind=KIND,
            model=named[0].model if named else kind,
            verdict=verdict,
            message=message,
            data=_dataset(problem, cases, rows),
            residuals={},
            timings=spent(),
            metrics={
                "of": named[0].kind if named else kind,
                "cases": len(cases),
                "succeeded": len(cases) - len(bad),
                "computed": len(outcomes) - found,
                "found": found,
                "cases_wall_s": float(sum(row.wall for row in rows)),
                "cases_processor_s": float(np.nansum([row.cpu for row in rows])),
            },
            provenance=provenance(None, options),
        )


def _dataset(problem: Any, cases: Sequence[Case], rows: Sequence[Outcome]):
    """One array over the fields for each column."""
    dims, shape = {}, []
    for name in cases[0].values:
        values = {label_of(c.values[name]): c.values[name] for c in cases}
        dims[_plain_name(name)] = _coordinate(problem, name, list(values.values()))
        shape.append(len(values))
    columns: dict[str, tuple[list, dict[str, str]]] = {
        "verdict": ([row.verdict for row in rows], {}),
        "message": ([row.message for row in rows], {}),
        "file": ([f"{c.key}.nc" if r.model else "" for c, r in zip(cases, rows)], {}),
        "wall_time": ([row.wall for row in rows], {"units": "s"}),
        "processor_time": ([row.cpu for row in rows], {"units": "s"}),
    }
    for name, values in _metrics(rows):
        taken = name in dims or name in OWN
        if re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) and not taken:
            texts = isinstance(values[0], str)
            columns[name] = (values, {} if texts else {"units": AS_NAMED})
    return xr.Dataset(
        {
            name: (list(dims), np.array(values).reshape(shape), attributes)
            for name, (values, attributes) in columns.items()
        },
        {"time": ("time", [0.0], {"units": "s"})}
        | {name: (name, *coordinate) for name, coordinate in dims.items()},
    )


def _metrics(rows: Sequence[Outcome]) -> Iterator[tuple[str, list]]:
    """Metrics that are numbers or texts in every case that has them."""
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    for name in names:
        values = [row.metrics.get(name) for row in rows]
        there = [value for value in values if value is not None]
        if there and all(isinstance(value, str) for value in there):
            yield name, ["" if value is None else value for value in values]
        elif there and all(isinstance(value, int | float) for value in there):
            yield name, [np.nan if value is None else float(value) for value in values]


def _coordinate(problem: Any, name: str, values: list) -> tuple:
    """Values of a field and their unit: numbers, or else their labels."""
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return np.array(values, float), {"units": unit_of(problem, name)}
    return (list(map(label_of, values)),)


def _plain_name(field: str) -> str:
    """The dimension of a field: weights_near of "weights.near", time_ of "time"."""
    name = field.replace(".", "_")
    return f"{name}_" if name in OWN else name


def case_rows(table: Result, metrics: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row a case: the values, the verdict, and metrics.

    Args:
        table: of :func:`sweep`.
        metrics: to show.

    Raises:
        InvalidInput: for another result.
    """
    if table.kind != KIND:
        raise InvalidInput(f"a result of kind {table.kind!r} is no sweep")
    shown = ["verdict", *metrics]
    dims = list(table.data.verdict.dims)
    rows = table.data[shown].to_dataframe(dims).reset_index()
    return rows[dims + shown].to_dict("records")
