"""The sparsity of a symmetric matrix of 3 x 3 blocks, determined once per model.

Only the upper triangle is stored, in CSR with sorted columns: the format of PARDISO,
and half the memory. The three rows of a node have the same blocks, so one number per
pair of nodes, the index of the block in its row, locates nine entries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import bsr_array, csr_array, sparray, triu

from drakebots.core.kernels import njit


@dataclass(frozen=True)
class SymmetricPattern:
    """Upper triangle of a symmetric matrix, CSR with sorted columns.

    Attributes:
        indptr: starts of the rows (n + 1,) int32.
        indices: columns (nnz,) int32; the diagonal comes first in each row.
    """

    indptr: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, matrix: sparray) -> tuple[SymmetricPattern, np.ndarray]:
        """The pattern of a symmetric matrix, and its upper values (nnz,)."""
        upper = triu(matrix, format="csr")
        upper.sort_indices()
        indptr, indices = (x.astype(np.int32) for x in (upper.indptr, upper.indices))
        return cls(indptr, indices), upper.data

    @property
    def size(self) -> int:
        """Number of rows n."""
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        """Number of entries of the upper triangle."""
        return len(self.indices)

    @property
    def diagonal(self) -> np.ndarray:
        """Positions of the diagonal among the values (n,)."""
        return self.indptr[:-1]

    def upper(self, values: np.ndarray) -> csr_array:
        """The upper triangle as a SciPy matrix; shares the values."""
        return csr_array((values, self.indices, self.indptr), shape=(self.size,) * 2)

    def full(self, values: np.ndarray) -> csr_array:
        """The whole symmetric matrix as a SciPy matrix."""
        upper = self.upper(values)
        lower = upper.T.tocsr()
        lower.setdiag(0.0)
        return (upper + lower).tocsr()

    def multiply(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """A x (n,) of the symmetric matrix with these upper values."""
        return _multiply(self.indptr, self.indices, values, np.ascontiguousarray(x))


@njit(cache=True)
def _multiply(indptr, indices, values, x):
    y = np.zeros(len(indptr) - 1)
    for i in range(len(y)):
        start = indptr[i]
        total, xi = values[start] * x[i], x[i]
        for p in range(start + 1, indptr[i + 1]):
            j = indices[p]
            total += values[p] * x[j]
            y[j] += values[p] * xi
        y[i] += total
    return y


def node_pattern(
    nodes: int, groups: list[np.ndarray]
) -> tuple[SymmetricPattern, list[np.ndarray]]:
    """The pattern of elements that couple all their nodes.

    Args:
        nodes: number of nodes.
        groups: nodes of each element (m, k), -1 for none.

    Returns:
        The pattern, and for each group the blocks (m, k (k + 1)/2) int32: the index
        in the lower node's row of the block of each pair (a, b >= a), or -1.
    """
    keys, of_pair = [], []
    for ids in groups:
        a, b = np.triu_indices(ids.shape[1])
        low = np.minimum(ids[:, a], ids[:, b]).astype(np.int64)
        high = np.maximum(ids[:, a], ids[:, b])
        keys.append(np.where(low < 0, -1, low * nodes + high))
    alone = np.arange(nodes, dtype=np.int64) * (nodes + 1)
    unique = np.unique(np.concatenate([alone, *(k.ravel() for k in keys)]))
    unique = unique[unique >= 0]
    row, column = unique // nodes, unique % nodes
    start = np.searchsorted(row, np.arange(nodes + 1))
    for k in keys:
        place = np.searchsorted(unique, k.ravel()).reshape(k.shape)
        block = place - start[np.maximum(k, 0) // nodes]
        of_pair.append(np.where(k < 0, -1, block).astype(np.int32))
    # Blocks on the diagonal lose their lower triangle.
    blocks = bsr_array((np.ones((len(column), 3, 3)), column, start))
    return SymmetricPattern.of(blocks.tocsr())[0], of_pair
