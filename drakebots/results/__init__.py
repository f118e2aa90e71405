"""One labelled result for every simulation and plan, and its file.

    result = simulate(...)                 # a frozen Result
    print(result.summary())
    result.save("trot.nc")                 # one netCDF-4 file, checksummed
    same = load_result("trot.nc")          # equal to `result`
    result.to_csv("trot.csv")

The file opens in anything that reads netCDF-4 or HDF5, e.g.
`xarray.open_dataset("trot.nc")`; see :mod:`drakebots.results.container`. The `kind` of
a result ("hamr.simulation", "quads.plan", ...) says what made it, and so which data,
plots and drawings it has.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.core.run import Verdict
    from drakebots.results.container import FORMAT_VERSION, columns
    from drakebots.results.origin import file_hash, freeze, provenance, to_json
    from drakebots.results.result import (
        LARGEST,
        Result,
        check_layout,
        in_order,
        load_result,
        require,
        with_units,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
