/* Sparse symmetric indefinite factorization A = P L D L' P' for interior points.

Programs of trajectories have KKT matrices of thousands of unknowns, a few dozen nonzeros
a column, and a chain of knots behind them: their factors are chains of small dense
blocks. This multifrontal method eliminates a block of columns (a front) at a time with
BLAS and LAPACK, which are given as function pointers (SciPy's own), so that nothing has
to be linked. Every front is

    [A11 A21'; A21 A22],   A11 = P L D L' P',   S = A22 - A21 A11^-1 A21'

and S is added into the front of the parent in the elimination tree. Pivots are 1x1 or
2x2 (Bunch-Kaufman) within A11. A pivot that would make entries of L larger than 1/u is
delayed: its column becomes one of the parent's. The sequence in which the columns were
eliminated in the end becomes the order of the next factorization, which delays few.

embed.c stands between this and IPOPT. */

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kkt.h"

#define AT(F, ld, i, j) ((F)[(size_t)(j) * (ld) + (i)])
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* --- BLAS, LAPACK, and the ordering: given by the caller ------------------------- */

typedef void (*Gemm)(char *, char *, int *, int *, int *, double *, double *, int *,
                     double *, int *, double *, double *, int *);
typedef void (*Gemv)(char *, int *, int *, double *, double *, int *, double *, int *,
                     double *, double *, int *);
typedef void (*Trsm)(char *, char *, char *, char *, int *, int *, double *, double *,
                     int *, double *, int *);
typedef void (*Sytrf)(char *, int *, double *, int *, int *, double *, int *, int *);
typedef void (*Syconv)(char *, char *, int *, double *, int *, int *, double *, int *);
/* ASK fills order[n], the sequence of elimination, for a matrix given by its entries on
one side of the diagonal; KEEP gives one that is better, for the next time. Returns
whether it was FOUND, was KNOWN from a matrix of the same pattern, or FAILED. */
enum { ASK, KEEP };
enum { FOUND, KNOWN, FAILED };
typedef int (*Order)(int what, int n, int nz, const int *i, const int *j, int *order);

static struct {
    Gemm gemm;
    Gemv gemv;
    Trsm trsm;
    Sytrf sytrf;
    Syconv syconv;
    Order order;
} call;

void kkt_use(void **functions) {
    call.gemm = (Gemm)functions[0];
    call.gemv = (Gemv)functions[1];
    call.trsm = (Trsm)functions[2];
    call.sytrf = (Sytrf)functions[3];
    call.syconv = (Syconv)functions[4];
    call.order = (Order)functions[5];
}

/* Least threshold of pivots for columns that can wait within their front. */
#define CAREFUL 1e-6

/* Columns that are eliminated together: narrow panels leave most of the work to products
of matrices. */
#ifndef PANEL
#define PANEL 24
#endif

/* Analyses of one matrix' pattern. IPOPT's first system is one for multipliers, whose
diagonal has no zeros for variables, so that the second factorization learns anew. */
#define LEARN 4

/* --- data ------------------------------------------------------------------------ */

typedef struct { /* a front as the analysis plans it */
    int pivots, rows;   /* number of own columns; of all rows, own columns first */
    int *row;           /* the rows (unknowns) */
    int parent;         /* front that receives the Schur complement, or -1 */
    int *to_parent;     /* places of the rows after the pivots among the parent's */
    int entries;        /* nonzeros of the matrix that enter here ... */
    int *source, *at;   /* ... where from, and at (row, column) of this front */
} Front;

typedef struct { /* a front's part of the factors */
    int eliminated, rows;
    int *row;    /* unknowns, those eliminated first, in the order of their pivots */
    double *L;   /* rows x eliminated, unit lower trapezoid */
    double *D;   /* inverses of the pivots: (d_kk, d_k+1,k), a 2x2 where d_k+1,k != 0 */
    size_t size, row_size;
} Factor;

struct Solver {
    int n, nz;
    int *i, *j;        /* entries, lower or upper, repeated ones are added */
    int rows;          /* number of unknowns without a diagonal at first */
    int fronts, most;  /* number of fronts; the most rows of one */
    Front *front;
    Factor *factor;
    int analysed, negative, zero, delayed, analyses;
    double flops;      /* multiplications and additions of the planned fronts */
    double *scale, *factors; /* A is factorized as scale A scale; by entry */
    double *F, *W, *stack, *x;
    size_t F_size, W_size, stack_size, stack_top;
    int *delay;        /* stack of delayed unknowns */
    int *bad;          /* columns of a front whose pivots failed */
    int *place;        /* rows of a child in its parent */
    int delay_top;
    int *order;        /* sequence of elimination: planned, then as it came */
};

static void *grown(void *old, size_t *size, size_t wanted, size_t item) {
    if (wanted <= *size && old) return old;
    *size = wanted + wanted / 4 + 64;
    return realloc(old, *size * item);
}

static void free_analysis(Solver *s) {
    for (int f = 0; f < s->fronts; f++) {
        free(s->front[f].row);
        free(s->front[f].to_parent);
        free(s->front[f].source);
        free(s->front[f].at);
        free(s->factor[f].row);
        free(s->factor[f].L);
        free(s->factor[f].D);
    }
    free(s->front);
    free(s->factor);
    s->front = NULL, s->factor = NULL, s->fronts = 0;
}

Solver *kkt_new(int n, int nz, const int *i, const int *j) {
    Solver *s = calloc(1, sizeof(Solver));
    s->n = n, s->nz = nz;
    s->i = malloc(sizeof(int) * (nz + 1)), s->j = malloc(sizeof(int) * (nz + 1));
    s->order = malloc(sizeof(int) * (n + 1));
    s->x = malloc(sizeof(double) * (n + 1));
    s->delay = malloc(sizeof(int) * (n + 1));
    s->place = malloc(sizeof(int) * (n + 1));
    s->bad = malloc(sizeof(int) * (2 * n + 2));
    s->scale = malloc(sizeof(double) * (n + 1));
    s->factors = malloc(sizeof(double) * (nz + 1));
    memcpy(s->i, i, sizeof(int) * nz);
    memcpy(s->j, j, sizeof(int) * nz);
    return s;
}

void kkt_free(Solver *s) {
    free_analysis(s);
    free(s->i), free(s->j), free(s->order), free(s->x), free(s->delay);
    free(s->scale), free(s->factors), free(s->bad), free(s->place);
    free(s->F), free(s->W), free(s->stack), free(s);
}

/* --- analysis: order, tree, fronts ------------------------------------------------ */

/* The pattern of A without its diagonal, both triangles, by columns; repeated entries
stay. Returns the indices and fills start[n + 1]. */
static int *pattern(const Solver *s, int *start) {
    int n = s->n;
    memset(start, 0, sizeof(int) * (n + 1));
    for (int k = 0; k < s->nz; k++)
        if (s->i[k] != s->j[k]) start[s->i[k] + 1]++, start[s->j[k] + 1]++;
    for (int k = 0; k < n; k++) start[k + 1] += start[k];
    int *index = malloc(sizeof(int) * (start[n] + 1));
    int *at = malloc(sizeof(int) * (n + 1));
    memcpy(at, start, sizeof(int) * n);
    for (int k = 0; k < s->nz; k++)
        if (s->i[k] != s->j[k]) {
            index[at[s->i[k]]++] = s->j[k];
            index[at[s->j[k]]++] = s->i[k];
        }
    /* Repeated entries leave. */
    int *seen = malloc(sizeof(int) * (n + 1)), kept = 0, from = 0;
    for (int k = 0; k < n; k++) seen[k] = -1;
    for (int k = 0; k < n; k++) {
        int end = start[k + 1];
        start[k] = kept;
        for (; from < end; from++)
            if (seen[index[from]] != k) seen[index[from]] = k, index[kept++] = index[from];
    }
    start[n] = kept;
    free(at), free(seen);
    return index;
}

static int ascending(const void *a, const void *b) { return *(int *)a - *(int *)b; }

static void sort(int *list, int n) { qsort(list, n, sizeof(int), ascending); }

static int find(int *up, int k) {
    while (up[k] != k) up[k] = up[up[k]], k = up[k];
    return k;
}

/* Whether a child front joins its parent: columns of few rows, or little fill. */
static int joins(int child, int child_rows, int parent, int parent_rows) {
    double more = (double)child * (child + parent_rows - child_rows);
    double own = (double)child * child_rows;
    return more <= 0.05 * own || (child < 6 && parent < 24 && more < 200);
}

/* Plans the fronts for s->order. */
static void plan(Solver *s) {
    int n = s->n;
    int *start = malloc(sizeof(int) * (n + 1));
    int *index = pattern(s, start);
    free_analysis(s);
    int *place = malloc(sizeof(int) * (n + 1));
    for (int k = 0; k < n; k++) place[s->order[k]] = k;

    /* Elimination tree and the rows of every column, in places. */
    int **rows = calloc(n + 1, sizeof(int *)), *count = calloc(n + 1, sizeof(int));
    int *parent = malloc(sizeof(int) * (n + 1)), *mark = malloc(sizeof(int) * (n + 1));
    int *child = malloc(sizeof(int) * (n + 1)), *other = malloc(sizeof(int) * (n + 1));
    int *buffer = malloc(sizeof(int) * (n + 1));
    for (int k = 0; k < n; k++) mark[k] = child[k] = other[k] = -1;
    /* Columns of a fundamental front share the rows of its first column. */
    int *up = malloc(sizeof(int) * (n + 1)); /* by column: front it is in (root) */
    int *width = malloc(sizeof(int) * (n + 1));
    int *kids = calloc(n + 1, sizeof(int));
    for (int k = 0; k < n; k++) {
        int m = 0, v = s->order[k];
        mark[k] = k;
        for (int p = start[v]; p < start[v + 1]; p++) {
            int r = place[index[p]];
            if (r > k && mark[r] != k) mark[r] = k, buffer[m++] = r;
        }
        for (int c = child[k]; c >= 0; c = other[c])
            for (int p = 0; p < count[c]; p++) {
                int r = rows[c][p];
                if (r > k && mark[r] != k) mark[r] = k, buffer[m++] = r;
            }
        /* Ascending, so that a complement's rows are in the sequence of its parent's. */
        sort(buffer, m);
        rows[k] = malloc(sizeof(int) * (m + 1));
        memcpy(rows[k], buffer, sizeof(int) * m);
        int first = m ? buffer[0] : n;
        count[k] = m, width[k] = 1, up[k] = k;
        parent[k] = first < n ? first : -1;
        if (first < n) other[k] = child[first], child[first] = k, kids[first]++;
    }
    /* Children join parents, bottom up; a front is named by its last column. */
    int *most = malloc(sizeof(int) * (n + 1)); /* rows below the front's columns */
    for (int k = 0; k < n; k++) most[k] = count[k];
    for (int k = 0; k < n; k++) {
        /* The child with the most rows first: it shares the most. */
        for (;;) {
            int best = -1;
            for (int c = child[k]; c >= 0; c = other[c])
                if (up[c] == c && (best < 0 || most[c] > most[best]) &&
                    joins(width[c], width[c] + most[c], width[k], width[k] + most[k]))
                    best = c;
            if (best < 0) break;
            up[best] = k, width[k] += width[best];
            /* Its children become k's. */
            int *end = &child[k];
            while (*end != best) end = &other[*end];
            *end = other[best];
            for (int c = child[best]; c >= 0;) {
                int after = other[c];
                other[c] = child[k], child[k] = c, c = after;
            }
        }
    }
    /* Fronts in the order of their last columns: a postorder is made of it. */
    int *number = malloc(sizeof(int) * (n + 1)), fronts = 0;
    int *todo = malloc(sizeof(int) * (2 * n + 2)), top = 0;
    for (int k = n - 1; k >= 0; k--)
        if (up[k] == k && parent[k] < 0) todo[top++] = k;
    int *sequence = malloc(sizeof(int) * (n + 1));
    char *open = calloc(n + 1, 1);
    while (top) {
        int k = todo[top - 1];
        if (!open[k]) {
            open[k] = 1;
            for (int c = child[k]; c >= 0; c = other[c]) todo[top++] = c;
        } else {
            top--;
            number[k] = fronts, sequence[fronts++] = k;
        }
    }
    s->fronts = fronts;
    s->front = calloc(fronts + 1, sizeof(Front));
    s->factor = calloc(fronts + 1, sizeof(Factor));
    int *owner = malloc(sizeof(int) * (n + 1)); /* by place: its front */
    int *held = calloc(fronts + 1, sizeof(int));
    for (int k = 0; k < n; k++) owner[k] = number[find(up, k)];
    s->most = 0, s->flops = 0;
    for (int f = 0; f < fronts; f++) {
        int k = sequence[f];
        Front *front = &s->front[f];
        front->pivots = width[k], front->rows = width[k] + count[k];
        front->row = malloc(sizeof(int) * (front->rows + 1));
        memcpy(front->row + width[k], rows[k], sizeof(int) * count[k]);
        front->parent = parent[k] >= 0 ? owner[parent[k]] : -1;
        s->most = MAX(s->most, front->rows);
        double p = width[k], r = count[k];
        s->flops += p * p * p / 3 + p * p * r + p * r * r;
    }
    for (int k = 0; k < n; k++)
        s->front[owner[k]].row[held[owner[k]]++] = k;
    int *where = malloc(sizeof(int) * (n + 1));
    for (int f = 0; f < fronts; f++) {
        Front *front = &s->front[f];
        int below = front->rows - front->pivots;
        front->to_parent = malloc(sizeof(int) * (below + 1));
        if (front->parent >= 0) {
            Front *to = &s->front[front->parent];
            for (int r = 0; r < to->rows; r++) where[to->row[r]] = r;
            for (int r = 0; r < below; r++)
                front->to_parent[r] = where[front->row[front->pivots + r]];
        }
    }
    /* Where the matrix' entries go. */
    int *target = malloc(sizeof(int) * (s->nz + 1));
    for (int k = 0; k < s->nz; k++) {
        target[k] = owner[MIN(place[s->i[k]], place[s->j[k]])];
        s->front[target[k]].entries++;
    }
    for (int f = 0; f < fronts; f++) {
        s->front[f].source = malloc(sizeof(int) * (s->front[f].entries + 1));
        s->front[f].at = malloc(sizeof(int) * 2 * (s->front[f].entries + 1));
        s->front[f].entries = 0;
    }
    for (int k = 0; k < s->nz; k++) {
        Front *front = &s->front[target[k]];
        front->source[front->entries++] = k;
    }
    for (int f = 0; f < fronts; f++) {
        Front *front = &s->front[f];
        for (int r = 0; r < front->rows; r++) where[front->row[r]] = r;
        for (int e = 0; e < front->entries; e++) {
            int k = front->source[e];
            int p = where[place[s->i[k]]], q = where[place[s->j[k]]];
            front->at[2 * e] = MAX(p, q), front->at[2 * e + 1] = MIN(p, q);
        }
    }
    /* From places to unknowns. */
    for (int f = 0; f < fronts; f++)
        for (int r = 0; r < s->front[f].rows; r++)
            s->front[f].row[r] = s->order[s->front[f].row[r]];
    for (int k = 0; k < n; k++) free(rows[k]);
    free(start), free(index), free(place), free(rows), free(count), free(parent);
    free(mark), free(child), free(other), free(buffer), free(up), free(width);
    free(kids), free(most), free(number), free(todo), free(sequence), free(open);
    free(owner), free(held), free(where), free(target);
}

/* Plans for an order that is asked for or known, or for the one that was learned. */
static void analyse(Solver *s, const double *a) {
    int n = s->n, known = 0;
    if (!s->analyses) {
        memset(s->bad, 0, sizeof(int) * n);
        for (int k = 0; k < s->nz; k++)
            if (s->i[k] == s->j[k] && a[k] != 0) s->bad[s->i[k]] = 1;
        s->rows = n;
        for (int k = 0; k < n; k++) s->rows -= s->bad[k];
        int found = call.order(ASK, n, s->nz, s->i, s->j, s->order);
        known = found == KNOWN;
        if (found == FAILED)
            for (int k = 0; k < n; k++) s->order[k] = k;
    } else {
        call.order(KEEP, n, s->nz, s->i, s->j, s->order);
    }
    plan(s);
    s->analyses = known ? LEARN : s->analyses + 1, s->analysed = 1;
}

/* --- dense kernels ------------------------------------------------------------------ */

static double symmetric_at(const double *F, int ld, int i, int j) {
    return i >= j ? AT(F, ld, i, j) : AT(F, ld, j, i);
}

/* Exchanges rows and columns p <= q of a lower-stored symmetric front, and rows of L. */
static void exchange(double *F, int ld, int rows, int p, int q, int *row) {
    if (p == q) return;
    double t;
#define SWAP(a, b) (t = (a), (a) = (b), (b) = t)
    for (int c = 0; c < p; c++) SWAP(AT(F, ld, p, c), AT(F, ld, q, c));
    for (int m = p + 1; m < q; m++) SWAP(AT(F, ld, m, p), AT(F, ld, q, m));
    for (int r = q + 1; r < rows; r++) SWAP(AT(F, ld, r, p), AT(F, ld, r, q));
    SWAP(AT(F, ld, p, p), AT(F, ld, q, q));
#undef SWAP
    int m = row[p];
    row[p] = row[q], row[q] = m;
}

/* The largest entry of column j from row k on but for its diagonal and `skip`; *which
is its row among the first `sums`, or -1. */
static double largest(const double *F, int ld, int rows, int sums, int k, int j,
                      int skip, int *which) {
    double all = 0, inner = 0;
    *which = -1;
    for (int r = k; r < rows; r++) {
        if (r == j || r == skip) continue;
        double value = fabs(symmetric_at(F, ld, r, j));
        if (value > all) all = value;
        if (r < sums && value > inner) inner = value, *which = r;
    }
    return all;
}

/* Eliminates up to `sums` columns of a front one pivot at a time, each tested against
its whole column: |D^-1| |column| <= 1/u. At a root every nonzero pivot counts.
Starts after the first k, and returns the number eliminated; the rest is the Schur
complement. */
static int eliminate_carefully(Solver *s, double *F, int ld, int rows, int sums, int k,
                               int *row, double *D, double u, int root) {
    int failed = 0;
    double strict = MAX(u, 0.3);
    while (k < sums) {
        int size = 0, j = -1, mate = -1;
        for (int pass = 0; pass < 2 && !size; pass++) {
            double least = pass ? u : strict;
            for (j = k; j < sums && !size; j++) {
                int r, other;
                double d = AT(F, ld, j, j);
                double side = largest(F, ld, rows, sums, k, j, -1, &r);
                if (d != 0 && fabs(d) >= least * side) {
                    size = 1;
                    break;
                }
                if (r < 0) continue;
                double e = AT(F, ld, r, r), c = symmetric_at(F, ld, r, j);
                double det = d * e - c * c;
                /* Entries in d * e and c * c that cancel leave nothing to trust. */
                if (fabs(det) <= 1e-14 * MAX(fabs(d * e), c * c)) continue;
                double l1 = largest(F, ld, rows, sums, k, j, r, &other);
                double l2 = largest(F, ld, rows, sums, k, r, j, &other);
                double g1 = (fabs(e) * l1 + fabs(c) * l2) / fabs(det);
                double g2 = (fabs(c) * l1 + fabs(d) * l2) / fabs(det);
                if (g1 * least <= 1 && g2 * least <= 1) {
                    size = 2, mate = r;
                    break;
                }
            }
        }
        if (!size && root) {
            /* Nothing can wait any longer: the largest diagonal, or a zero pivot. */
            j = k;
            for (int c = k; c < sums; c++)
                if (fabs(AT(F, ld, c, c)) > fabs(AT(F, ld, j, j))) j = c;
            if (AT(F, ld, j, j) == 0) {
                for (int c = k; c < sums; c++) D[2 * c] = D[2 * c + 1] = 0;
                failed = sums - k;
                break;
            }
            size = 1;
        }
        if (!size) break;
        if (size == 1) {
            exchange(F, ld, rows, k, j, row);
            double d = AT(F, ld, k, k), inverse = 1 / d;
            s->negative += d < 0;
            D[2 * k] = inverse, D[2 * k + 1] = 0;
            double *l = &AT(F, ld, 0, k);
            for (int c = k + 1; c < rows; c++) {
                double f = l[c] * inverse;
                if (f == 0) continue;
                double *to = &AT(F, ld, 0, c);
                for (int r = c; r < rows; r++) to[r] -= f * l[r];
            }
            for (int r = k + 1; r < rows; r++) l[r] *= inverse;
        } else {
            int p = MIN(j, mate), q = MAX(j, mate);
            exchange(F, ld, rows, k, p, row);
            exchange(F, ld, rows, k + 1, q, row);
            double d = AT(F, ld, k, k), c = AT(F, ld, k + 1, k);
            double e = AT(F, ld, k + 1, k + 1), det = d * e - c * c;
            s->negative += det < 0 ? 1 : d + e < 0 ? 2 : 0;
            D[2 * k] = e / det, D[2 * k + 1] = -c / det, D[2 * k + 2] = d / det;
            D[2 * k + 3] = 0;
            AT(F, ld, k + 1, k) = 0;
            double *a = &AT(F, ld, 0, k), *b = &AT(F, ld, 0, k + 1);
            for (int m = k + 2; m < rows; m++) {
                double f = a[m] * D[2 * k] + b[m] * D[2 * k + 1];
                double g = a[m] * D[2 * k + 1] + b[m] * D[2 * k + 2];
                double *to = &AT(F, ld, 0, m);
                for (int r = m; r < rows; r++) to[r] -= f * a[r] + g * b[r];
            }
            for (int r = k + 2; r < rows; r++) {
                double f = a[r] * D[2 * k] + b[r] * D[2 * k + 1];
                b[r] = a[r] * D[2 * k + 1] + b[r] * D[2 * k + 2];
                a[r] = f;
            }
        }
        k += size;
    }
    s->zero += failed;
    return k + failed;
}

static double greatest(const double *x, int n) {
    double most = 0;
    for (int k = 0; k < n; k++) {
        double size = fabs(x[k]);
        most = size > most ? size : most;
    }
    return most;
}

/* Eliminates `sums` columns after the first `done` of a front by LAPACK and BLAS. If
pivots fail, lists their columns in s->bad and leaves the front as it was. */
static int eliminate_block(Solver *s, double *front, int ld, int rows, int done,
                           int sums, int *row, double *D, double u, int *bad) {
    double *F = &AT(front, ld, done, done);
    int below = rows - done - sums, info, work = 64 * sums;
    row += done, D += 2 * done;
    size_t square = (size_t)sums * sums, long_part = (size_t)sums * below;
    s->W = grown(s->W, &s->W_size, square + long_part + work + 3 * sums, sizeof(double));
    double *A = s->W, *X = A + square, *off = X + long_part, *room = off + sums;
    int *swap = (int *)(room + work);
    for (int c = 0; c < sums; c++)
        memcpy(&AT(A, sums, c, c), &AT(F, ld, c, c), sizeof(double) * (sums - c));
    call.sytrf("L", &sums, A, &sums, swap, room, &work, &info);
    if (info < 0) return 0;
    call.syconv("L", "C", &sums, A, &sums, swap, off, &info);
    if (info) return 0;
    /* The columns in the order of their pivots, as LAPACK exchanged them. */
    int *from = swap + sums;
    for (int k = 0; k < sums; k++) from[k] = k;
    for (int k = 0; k < sums;) {
        int one = swap[k] > 0, a = one ? k : k + 1;
        int b = one ? swap[k] - 1 : -swap[k + 1] - 1, t = from[a];
        from[a] = from[b], from[b] = t;
        k += one ? 1 : 2;
    }
    /* Inverses of the pivots. */
    int negative = 0;
    for (int k = 0; k < sums;) {
        if (swap[k] > 0) {
            double d = AT(A, sums, k, k);
            if (d == 0) s->bad[(*bad)++] = from[k];
            negative += d < 0;
            D[2 * k] = 1 / d, D[2 * k + 1] = 0, k += 1;
        } else {
            double d = AT(A, sums, k, k), e = AT(A, sums, k + 1, k + 1), c = off[k];
            double det = (d / c) * (e / c) - 1; /* over c^2; BK keeps it below -0.5 */
            negative += det < 0 ? 1 : d + e < 0 ? 2 : 0;
            D[2 * k] = e / c / det / c, D[2 * k + 2] = d / c / det / c;
            D[2 * k + 1] = -1 / (det * c), D[2 * k + 3] = 0, k += 2;
        }
    }
    if (*bad) return sort(s->bad, *bad), 0;
    for (int c = 0; c < sums; c++)
        memcpy(X + (size_t)c * below, &AT(F, ld, sums, from[c]), sizeof(double) * below);
    double one = 1, minus = -1;
    if (below) call.trsm("R", "L", "T", "U", &below, &sums, &one, A, &sums, X, &below);
    /* L21 = X D^-1 must stay below 1 / u. */
    double limit = 1 / u;
    for (int k = 0; k < sums && below;) {
        double *x = X + (size_t)k * below, worst;
        if (D[2 * k + 1] == 0) {
            worst = greatest(x, below);
            if (!(worst * fabs(D[2 * k]) <= limit)) s->bad[(*bad)++] = from[k];
            k += 1;
        } else {
            double second = greatest(x + below, below);
            worst = greatest(x, below);
            double g = fabs(D[2 * k]) * worst + fabs(D[2 * k + 1]) * second;
            double h = fabs(D[2 * k + 1]) * worst + fabs(D[2 * k + 2]) * second;
            if (!(g <= limit && h <= limit))
                s->bad[(*bad)++] = from[k], s->bad[(*bad)++] = from[k + 1];
            k += 2;
        }
    }
    if (*bad) return sort(s->bad, *bad), 0;
    s->negative += negative;
    int *old = (int *)room;
    memcpy(old, row, sizeof(int) * sums);
    for (int k = 0; k < sums; k++) row[k] = old[from[k]];
    for (int c = 0; c < done; c++) {
        double *l = &AT(front, ld, done, c);
        for (int k = 0; k < sums; k++) off[k] = l[from[k]];
        memcpy(l, off, sizeof(double) * sums);
    }
    for (int c = 0; c < sums; c++)
        memcpy(&AT(F, ld, c, c), &AT(A, sums, c, c), sizeof(double) * (sums - c));
    for (int k = 0; k < sums && below;) {
        double *x = X + (size_t)k * below, *to = &AT(F, ld, sums, k);
        if (D[2 * k + 1] == 0) {
            for (int r = 0; r < below; r++) to[r] = x[r] * D[2 * k];
            k += 1;
        } else {
            double *y = x + below, *next = &AT(F, ld, sums, k + 1);
            double p = D[2 * k], q = D[2 * k + 1], w = D[2 * k + 2];
            for (int r = 0; r < below; r++) {
                to[r] = x[r] * p + y[r] * q;
                next[r] = x[r] * q + y[r] * w;
            }
            k += 2;
        }
    }
    /* The lower half of A22 - L21 X', by blocks of columns. */
    const int block = 96;
    for (int c = 0; c < below; c += block) {
        int high = below - c, wide = MIN(block, below - c);
        call.gemm("N", "T", &high, &wide, &sums, &minus, &AT(F, ld, sums + c, 0), &ld,
                  X + c, &below, &one, &AT(F, ld, sums + c, sums + c), &ld);
    }
    return sums;
}

/* The same by LAPACK and BLAS, some columns at a time. Pivots are chosen among these, and
the columns whose pivots fail the test are put behind all others, for another attempt
after them. Returns the number of columns eliminated. */
static int eliminate_fast(Solver *s, double *F, int ld, int rows, int sums, int *row,
                          double *D, double u) {
    int k = 0;
    for (int attempt = 0; attempt < 8 && k < sums;) {
        int bad = 0, last = sums - k <= PANEL + PANEL / 2;
        int wide = last ? sums - k : PANEL;
        double least = last ? u : MAX(u, CAREFUL);
        if (eliminate_block(s, F, ld, rows, k, wide, row, D, least, &bad)) {
            k += wide;
            continue;
        }
        if (!bad) break;
        /* s->bad[0 .. bad): columns that failed, ascending. */
        for (int b = bad - 1; b >= 0; b--)
            exchange(F, ld, rows, k + s->bad[b], --sums, row);
        attempt++;
    }
    return k;
}

/* --- numeric factorization ---------------------------------------------------------- */

/* Scales rows and columns to largest entries near 1 (Ruiz 2001), by powers of two. The
first matrix decides for all that follow: barrier terms, which grow large on the diagonal
later, make good pivots at any scale. */
static void equilibrate(Solver *s, const double *a) {
    double *d = s->scale, *largest = s->x;
    for (int k = 0; k < s->n; k++) d[k] = 1;
    for (int round = 0; round < 4; round++) {
        memset(largest, 0, sizeof(double) * s->n);
        for (int k = 0; k < s->nz; k++) {
            int i = s->i[k], j = s->j[k];
            double value = fabs(a[k]) * d[i] * d[j];
            if (value > largest[i]) largest[i] = value;
            if (value > largest[j]) largest[j] = value;
        }
        for (int k = 0; k < s->n; k++) {
            int power;
            if (!(largest[k] > 0)) continue;
            frexp(largest[k], &power);
            d[k] = ldexp(d[k], -power / 2);
        }
    }
    for (int k = 0; k < s->nz; k++) s->factors[k] = d[s->i[k]] * d[s->j[k]];
}

/* Adds the lower half of S (size, size) to F at places to[size], in any sequence ... */
static void add_scattered(double *F, int ld, const double *S, int size, const int *to) {
    for (int c = 0; c < size; c++) {
        const double *column = S + (size_t)c * size;
        for (int r = c; r < size; r++)
            AT(F, ld, MAX(to[r], to[c]), MIN(to[r], to[c])) += column[r];
    }
}

/* ... or ascending: by runs of rows that are neighbours in F, too. */
static void add_ascending(double *F, int ld, const double *S, int size, const int *to,
                          int *end) {
    for (int r = size - 1; r >= 0; r--)
        end[r] = r + 1 < size && to[r + 1] == to[r] + 1 ? end[r + 1] : r + 1;
    for (int c = 0; c < size; c++) {
        const double *column = S + (size_t)c * size;
        double *into = &AT(F, ld, 0, to[c]);
        for (int r = c; r < size;) {
            double *there = into + to[r];
            const double *here = column + r;
            int count = end[r] - r;
            for (int k = 0; k < count; k++) there[k] += here[k];
            r += count;
        }
    }
}

/* Fronts with fewer products than this are eliminated without LAPACK. */
#define SMALL 3000

int kkt_factor(Solver *s, const double *a, double u) {
    if (!s->analysed) equilibrate(s, a), analyse(s, a);
    s->negative = s->zero = s->delayed = 0;
    s->stack_top = 0, s->delay_top = 0;
    int *late = calloc(s->fronts + 1, sizeof(int)); /* delayed columns that come in */
    /* Children's complements lie on the stack: (rows, delayed) and their lower halves. */
    int *kids = malloc(sizeof(int) * (s->fronts + 1)), top = 0;
    int *waiting = malloc(sizeof(int) * (s->fronts + 1)); /* delayed by each front */
    int done = 0;
    for (int f = 0; f < s->fronts; f++) {
        Front *plan = &s->front[f];
        Factor *out = &s->factor[f];
        int own = plan->pivots, more = late[f], sums = own + more;
        int rows = plan->rows + more, ld = rows;
        s->F = grown(s->F, &s->F_size, (size_t)ld * rows, sizeof(double));
        out->row = grown(out->row, &out->row_size, rows, sizeof(int));
        double *F = s->F;
        for (int c = 0; c < rows; c++)
            memset(&AT(F, ld, c, c), 0, sizeof(double) * (rows - c));
        memcpy(out->row, plan->row, sizeof(int) * own);
        memcpy(out->row + sums, plan->row + own, sizeof(int) * (plan->rows - own));
        for (int e = 0; e < plan->entries; e++) {
            int r = plan->at[2 * e], c = plan->at[2 * e + 1];
            if (r >= own) r += more;
            if (c >= own) c += more;
            int k = plan->source[e];
            AT(F, ld, r, c) += a[k] * s->factors[k];
        }
        /* The children's complements, last one on top. */
        int next_late = own + more;
        while (top && s->front[kids[top - 1]].parent == f) {
            int kid = kids[--top];
            Front *child = &s->front[kid];
            int wait = waiting[kid], below = child->rows - child->pivots;
            int size = wait + below;
            s->stack_top -= (size_t)size * size;
            double *S = s->stack + s->stack_top;
            next_late -= wait;
            s->delay_top -= wait;
            memcpy(out->row + next_late, s->delay + s->delay_top, sizeof(int) * wait);
            int *to = s->place;
            for (int r = 0; r < wait; r++) to[r] = next_late + r;
            for (int r = 0; r < below; r++) {
                int p = child->to_parent[r];
                to[wait + r] = p >= own ? p + more : p;
            }
            if (wait) add_scattered(F, ld, S, size, to);
            else add_ascending(F, ld, S, size, to, s->bad);
        }
        if (!out->D || more || out->eliminated < sums)
            out->D = realloc(out->D, sizeof(double) * 2 * (sums + 1));
        int count = 0, root = plan->parent < 0;
        if ((double)sums * rows * rows > SMALL && sums > 4)
            count = eliminate_fast(s, F, ld, rows, sums, out->row, out->D, u);
        if (count < sums)
            count = eliminate_carefully(s, F, ld, rows, sums, count, out->row, out->D, u,
                                        root);
        /* Keep L, hand the complement on. */
        out->eliminated = count, out->rows = rows;
        out->L = grown(out->L, &out->size, (size_t)rows * count + 1, sizeof(double));
        for (int c = 0; c < count; c++)
            memcpy(&AT(out->L, rows, c, c), &AT(F, ld, c, c), sizeof(double) * (rows - c));
        for (int k = 0; k < count; k++) s->order[done++] = out->row[k];
        if (!root) {
            int size = rows - count, wait = sums - count;
            waiting[f] = wait;
            s->delayed += wait;
            late[plan->parent] += wait;
            memcpy(s->delay + s->delay_top, out->row + count, sizeof(int) * wait);
            s->delay_top += wait;
            s->stack = grown(s->stack, &s->stack_size,
                             s->stack_top + (size_t)size * size, sizeof(double));
            for (int c = 0; c < size; c++)
                memcpy(s->stack + s->stack_top + (size_t)c * size + c,
                       &AT(F, ld, count + c, count + c), sizeof(double) * (size - c));
            s->stack_top += (size_t)size * size;
            kids[top++] = f;
        }
    }
    free(late), free(kids), free(waiting);
    return s->zero > 0;
}

void kkt_learn(Solver *s, double share) {
    if (s->analyses < LEARN && s->delayed > share * s->n) s->analysed = 0;
}

/* --- solution ------------------------------------------------------------------------ */

void kkt_solve(Solver *s, double *b) {
    double one = 1, minus = -1;
    int step = 1;
    double *x = s->x;
    s->W = grown(s->W, &s->W_size, (size_t)s->n + 1, sizeof(double));
    double *y = s->W;
    for (int k = 0; k < s->n; k++) x[k] = b[k] * s->scale[k];
    for (int f = 0; f < s->fronts; f++) {
        Factor *o = &s->factor[f];
        int m = o->eliminated, ld = o->rows, below = ld - m;
        for (int r = 0; r < ld; r++) y[r] = r < m ? x[o->row[r]] : 0;
        for (int k = 0; k < m; k++) {
            double *l = &AT(o->L, ld, 0, k), v = y[k];
            for (int r = k + 1; r < m; r++) y[r] -= l[r] * v;
        }
        if (below && m)
            call.gemv("N", &below, &m, &minus, o->L + m, &ld, y, &step, &one, y + m, &step);
        for (int k = 0; k < m; k++) x[o->row[k]] = y[k];
        for (int r = m; r < ld; r++) x[o->row[r]] += y[r];
    }
    for (int f = s->fronts - 1; f >= 0; f--) {
        Factor *o = &s->factor[f];
        int m = o->eliminated, ld = o->rows, below = ld - m;
        for (int r = m; r < ld; r++) y[r] = x[o->row[r]];
        for (int k = 0; k < m;) {
            double p = x[o->row[k]];
            if (o->D[2 * k + 1] == 0) {
                y[k] = p * o->D[2 * k], k += 1;
            } else {
                double q = x[o->row[k + 1]];
                y[k] = p * o->D[2 * k] + q * o->D[2 * k + 1];
                y[k + 1] = p * o->D[2 * k + 1] + q * o->D[2 * k + 2], k += 2;
            }
        }
        if (below && m)
            call.gemv("T", &below, &m, &minus, o->L + m, &ld, y + m, &step, &one, y, &step);
        for (int k = m - 1; k >= 0; k--) {
            double *l = &AT(o->L, ld, 0, k), v = y[k];
            for (int r = k + 1; r < m; r++) v -= l[r] * y[r];
            y[k] = v;
        }
        for (int k = 0; k < m; k++) x[o->row[k]] = y[k];
    }
    for (int k = 0; k < s->n; k++) b[k] = x[k] * s->scale[k];
}

void kkt_report(const Solver *s, int *counts, double *sizes) {
    counts[0] = s->negative, counts[1] = s->zero, counts[2] = s->delayed;
    counts[3] = s->fronts, counts[4] = s->most, counts[5] = s->analyses;
    counts[6] = s->rows;
    sizes[0] = 0, sizes[1] = s->flops;
    for (int f = 0; f < s->fronts; f++)
        sizes[0] += (double)s->factor[f].rows * s->factor[f].eliminated;
}
