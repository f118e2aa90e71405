"""CasADi functions as machine code that computes several columns at once.

A program uses the same function at all its knots. CasADi's own C code computes one use
after the other; here every variable of the C code is a vector register, with one use in
each of its lanes. A Mini Cheetah's derivatives take a quarter of the time so, and a
seventieth of the interpreter's; the answers are the same to the bit. Code is compiled
once and kept on disk. Without a C compiler, or with DRAKEBOTS_COMPILE=0, CasADi
interprets the functions.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache

import casadi as ca

from drakebots.core.files import cache_folder, part_folder
from drakebots.core.lazy import late
from drakebots.core.stages import stage

llvm = late("llvmlite.binding")  # comes with numba

WORTH_IT = 2000
"""Number of instructions below which a function is interpreted."""

LANES = 4
"""Columns that machine code computes at once."""

_FLAGS = ("-O1", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off", "-w")
"""Without fused products and sums, so that every processor computes the same to the
bit, and the same as interpreted."""

_ON_VECTORS = (
    "ADD: x + y; SUB: x - y; MUL: x * y; DIV: x / y; NEG: -x; SQ: x * x; TWICE: x + x; "
    "INV: ALL(1.0) / x; ASSIGN: x"
)
_ON_LANES = (
    "LT: x < y; LE: x <= y; EQ: x == y; NE: x != y; AND: x && y; OR: x || y; NOT: !x; "
    "IF_ELSE_ZERO: x ? y : 0; SIGN: x < 0 ? -1 : x > 0 ? 1 : x; SQRT: sqrt(x); "
    "SIN: sin(x); COS: cos(x); TAN: tan(x); ASIN: asin(x); ACOS: acos(x); "
    "ATAN: atan(x); SINH: sinh(x); COSH: cosh(x); TANH: tanh(x); ASINH: asinh(x); "
    "ACOSH: acosh(x); ATANH: atanh(x); EXP: exp(x); EXPM1: expm1(x); LOG: log(x); "
    "LOG1P: log1p(x); ERF: erf(x); FABS: fabs(x); FLOOR: floor(x); CEIL: ceil(x); "
    "POW: pow(x, y); CONSTPOW: pow(x, y); FMIN: fmin(x, y); FMAX: fmax(x, y); "
    "ATAN2: atan2(x, y); HYPOT: hypot(x, y); FMOD: fmod(x, y); "
    "REMAINDER: remainder(x, y); COPYSIGN: copysign(x, y)"
)
"""CasADi's operations in C, on vectors and on one lane after the other."""

_HEAD = """\
#include <math.h>
#define inf INFINITY
#define nan NAN
#if defined(__GNUC__) && !defined(__clang__)
#define SPLIT(n) __asm__ goto("" : : : : split##n); split##n:;
#else
#define SPLIT(n)
#endif
typedef double vector __attribute__((vector_size({bytes})));
typedef long long integer;
#define ALL(x) (vector){{{all}}}
#define IN(i, k, n) (arg[i] ? (vector){{{load}}} : ALL(0.0))
#define OUT(i, k, n, x) if (res[i]) {{ {store} }}
#define EACH_LANE for (int k = 0; k < {lanes}; ++k)
"""

_FUNCTION = """\
{operations}
static const integer {name}_shapes[][3] = {{ {shapes} }};
integer {name}_n_in(void) {{ return {inputs}; }}
integer {name}_n_out(void) {{ return {outputs}; }}
const integer* {name}_sparsity_in(integer i) {{ return {name}_shapes[i]; }}
const integer* {name}_sparsity_out(integer i) {{ return {name}_shapes[{inputs} + i]; }}
int {name}(const double** arg, double** res, integer* iw, double* w, int mem) {{
  vector {variables};
{steps}
  return 0;
}}
"""


def _wide(name: str) -> str:
    """The name of the machine code of a function."""
    return f"{name}_wide"


def _code(f: ca.Function) -> str:
    """C code of a function of LANES columns, for `casadi.external`.

    GCC's register allocation takes a time that grows with the square of a function's
    length. From 2^26 registers times basic blocks on it uses a simpler algorithm
    (lra_simple_p in GCC's ira.cc), whose code is up to 5 % slower for expressions like
    these, and the 52,000 instructions of a Mini Cheetah's Jacobian take 5 s. Jumps
    that the compiler cannot see through, and that cost no instruction, end blocks.
    Other compilers skip them.

    Raises:
        KeyError: for an operation that has no code here.
    """
    rows_in = [f.numel_in(i) for i in range(f.n_in())]
    rows_out = [f.nnz_out(i) for i in range(f.n_out())]
    steps, used = [], set()
    for k in range(f.n_instructions()):
        op, to = f.instruction_id(k), f.instruction_output(k)
        at = f.instruction_input(k)
        if op == ca.OP_INPUT:
            step = f"a{to[0]}=IN({at[0]},{at[1]},{rows_in[at[0]]});"
        elif op == ca.OP_OUTPUT:
            step = f"OUT({to[0]},{to[1]},{rows_out[to[0]]},a{at[0]});"
        elif op == ca.OP_CONST:
            step = f"a{to[0]}=ALL({f.instruction_constant(k)!r});"
        else:
            used.add(op)
            step = f"a{to[0]}=OP{op}(a{at[0]},a{at[-1]});"
        steps.append(step)
    every = len(steps) ** 2 >> 27
    if every >= 3:  # of 20,000 steps: with fewer nothing is won
        for n, k in enumerate(range(0, len(steps), every)):
            steps[k] += f" SPLIT({n})"
    lanes = range(LANES)
    head = _HEAD.format(
        lanes=LANES,
        bytes=8 * LANES,
        all=", ".join("x" for _ in lanes),
        load=", ".join(f"arg[i][k + {lane} * n]" for lane in lanes),
        store=" ".join(f"res[i][k + {lane} * n] = x[{lane}];" for lane in lanes),
    )
    forms = [_operations()[op].replace("OP", f"OP{op}", 1) for op in sorted(used)]
    return head + _FUNCTION.format(
        name=_wide(f.name()),
        operations="\n".join(forms),
        shapes=", ".join(f"{{{n}, {LANES}, 1}}" for n in (*rows_in, *rows_out)),
        inputs=f.n_in(),
        outputs=f.n_out(),
        variables=", ".join(f"a{i}" for i in range(max(1, f.sz_w()))),
        steps="\n".join(steps),
    )


@cache
def _operations() -> dict[int, str]:
    """A macro or function OP(x, y) in C for every operation of CasADi that has one."""
    whole = "#define OP(x, y) ({})"
    each = (
        "static vector OP(vector a, vector b) {{ vector out; EACH_LANE "
        "{{ double x = a[k], y = b[k]; out[k] = {}; }} return out; }}"
    )
    return {
        getattr(ca, f"OP_{name}"): form.format(code)
        for form, text in ((whole, _ON_VECTORS), (each, _ON_LANES))
        for name, code in (item.split(": ", 1) for item in text.split("; "))
    }


@cache
def _flags() -> tuple[str, ...]:
    """Flags of the compiler; wider registers change no bit of the answers."""
    wide = llvm.get_host_cpu_features().get("avx2")
    return (*_FLAGS, "-mavx2") if wide else _FLAGS


def many(function: ca.Function, count: int) -> ca.Function:
    """A function of `count` columns (n, count), as `casadi.Function.map` gives it; one
    of :func:`compiled` computes LANES of them at once."""
    wide, pieces = _wide(function.name()), count
    found = function.is_a("MXFunction") and function.has_function(wide)
    if found:
        function, pieces = function.find_function(wide), -(-count // LANES)
    mapped = function.map(pieces) if pieces > 1 else function
    if not found or pieces * LANES == count:
        return mapped
    # The last lanes compute the last column again.
    given = [
        ca.MX.sym(f"i{i}", mapped.size1_in(i), count) for i in range(mapped.n_in())
    ]
    more = pieces * LANES - count
    full = [ca.horzcat(x, ca.repmat(x[:, -1], 1, more)) for x in given]
    return ca.Function(mapped.name(), given, [y[:, :count] for y in mapped.call(full)])


def _by_column(function: ca.Function, wide: ca.Function) -> ca.Function:
    """A compiled function of one column: its machine code with the same in all lanes,
    in which :func:`many` finds it."""
    given = function.mx_in()
    values = wide.call([ca.repmat(ca.vec(x), 1, LANES) for x in given])
    shapes = [function.sparsity_out(i) for i in range(function.n_out())]
    out = [ca.MX(shape, value[:, 0]) for shape, value in zip(shapes, values)]
    return ca.Function(
        function.name(), given, out, function.name_in(), function.name_out()
    )


def compiler() -> str | None:
    """The path of the C compiler, or None to interpret."""
    if os.environ.get("DRAKEBOTS_COMPILE", "1") == "0":
        return None
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = name and shutil.which(name)
        if found:
            return found
    return None


RATE = 11e3
"""Instructions of a function that a compiler translates in a second, about [1/s]."""


def compiled(
    functions: Sequence[ca.Function], sources: Sequence[str], what: str = "derivatives"
) -> list[ca.Function]:
    """The functions in the same order, large ones compiled.

    Functions that cannot be compiled (no compiler, a read-only disk, an error of the
    compiler) are returned unchanged.

    Args:
        functions: the functions.
        sources: origin of each, by which its code is found again: the
            code of a Hessian takes longer to write than to load.
        what: their name, for messages while they are compiled.
    """
    cc = compiler()
    if cc is None:
        return list(functions)
    jobs: list[_Job | None] = []
    try:
        with stage("compile"):
            for f, source in zip(functions, sources):
                large = f.n_instructions() >= WORTH_IT
                jobs.append(_Job(f, cc, source) if large else None)
        new = [job.function for job in jobs if job and job.process]
        seconds = max(1.0, sum(f.n_instructions() for f in new) / RATE)
        saying = f"compiling {what}, once: about {seconds:.0f} s" if new else ""
        with stage("compile", saying):
            return [job.finish() if job else f for job, f in zip(jobs, functions)]
    finally:
        for job in filter(None, jobs):  # Ctrl-C
            job.stop()


class _Job:
    """The compilation of one function; compilers run in parallel."""

    def __init__(self, function: ca.Function, cc: str, source: str):
        self.function, self.process, self.target = function, None, None
        # The name is part of the code, so it must not count.
        how = (*_flags(), str(LANES), _HEAD, _FUNCTION, *_operations().values())
        parts = (source, function.name(), ca.__version__, cc, *how)
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        try:
            folder = cache_folder()
            folder.mkdir(parents=True, exist_ok=True)
            self.target = folder / f"{function.name()}_{key[:24]}.so"
            if not os.path.exists(self.target):
                self._start(_code(function), cc)
        except (OSError, KeyError):
            self.target = None

    def _start(self, code: str, cc: str) -> None:
        self.work = part_folder(self.target)
        source = self.work / "function.c"
        source.write_text(code)
        self.process = subprocess.Popen(
            [cc, *_flags(), str(source), "-o", str(self.work / "function.so"), "-lm"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def finish(self) -> ca.Function:
        if self.target is None:
            return self.function
        try:
            if self.process is not None:
                if self.process.wait() != 0:
                    return self.function
                os.replace(self.work / "function.so", self.target)
            wide = ca.external(_wide(self.function.name()), str(self.target))
            return _by_column(self.function, wide)
        except (OSError, RuntimeError):
            return self.function

    def stop(self) -> None:
        """Ends the compiler if it runs, and removes its files."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            shutil.rmtree(self.work, ignore_errors=True)
