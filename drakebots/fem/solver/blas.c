/* The BLAS that MUMPS calls, on the library that SciPy carries.
 *
 * CasADi's OpenBLAS is compiled for any x86-64 processor; SciPy's chooses kernels for the
 * processor it runs on, and multiplies MUMPS's fronts two to four times as fast. This
 * library is opened for all to see before MUMPS is, so that MUMPS finds these names
 * here and not in CasADi's. It knows SciPy's functions by their addresses
 * (scipy.linalg.cython_blas).
 */

typedef void (*gemm_t)(const char *, const char *, const int *, const int *, const int *,
                       const double *, const double *, const int *, const double *,
                       const int *, const double *, double *, const int *);
typedef void (*trsm_t)(const char *, const char *, const char *, const char *,
                       const int *, const int *, const double *, const double *,
                       const int *, double *, const int *);

static gemm_t gemm;
static trsm_t trsm;

void blas_use(void **functions) {
  gemm = (gemm_t)functions[0];
  trsm = (trsm_t)functions[1];
}

void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b,
            const int *ldb, const double *beta, double *c, const int *ldc) {
  gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void dtrsm_(const char *side, const char *uplo, const char *ta, const char *diag,
            const int *m, const int *n, const double *alpha, const double *a,
            const int *lda, double *b, const int *ldb) {
  trsm(side, uplo, ta, diag, m, n, alpha, a, lda, b, ldb);
}

/* C = alpha op(A) op(B) + beta C, one triangle of C (n, n) alone; SciPy names no
 * function for it. Columns go by blocks: what is off the diagonal by one product, the
 * block on it by another, of which one triangle is kept. */
#define BLOCK 48

void dgemmt_(const char *uplo, const char *ta, const char *tb, const int *n,
             const int *k, const double *alpha, const double *a, const int *lda,
             const double *b, const int *ldb, const double *beta, double *c,
             const int *ldc) {
  const int lower = *uplo == 'L' || *uplo == 'l';
  const long row = *ta == 'N' || *ta == 'n' ? 1 : *lda;   /* to the next row of op(A) */
  const long column = *tb == 'N' || *tb == 'n' ? *ldb : 1; /* ... column of op(B) */
  const int block = BLOCK;
  const double zero = 0.0;
  double square[BLOCK * BLOCK];
  for (int j = 0; j < *n; j += BLOCK) {
    const int width = *n - j < BLOCK ? *n - j : BLOCK;
    const int first = lower ? j + width : 0;
    const int rows = lower ? *n - first : j;
    const double *right = b + j * column;
    if (rows > 0)
      gemm(ta, tb, &rows, &width, k, alpha, a + first * row, lda, right, ldb, beta,
           c + first + (long)j * *ldc, ldc);
    gemm(ta, tb, &width, &width, k, alpha, a + j * row, lda, right, ldb, &zero, square,
         &block);
    for (int q = 0; q < width; q++) {
      double *into = c + j + (long)(j + q) * *ldc;
      for (int p = lower ? q : 0; p < (lower ? width : q + 1); p++)
        into[p] = square[p + q * BLOCK] + (*beta == 0.0 ? 0.0 : *beta * into[p]);
    }
  }
}
