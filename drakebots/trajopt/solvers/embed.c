/* Embedded rows: equalities of single knots are eliminated with columns of their own.

Closed loops c(q) = 0 at a knot bind the coordinates of that knot alone. In a KKT matrix
their multipliers nu have no other neighbours than these coordinates q:

    [ A   C'  *]   q
    [ C   0   0]   nu
    [ *   0   *]   all others

Of the w coordinates of m rows, m depend on the b = w - m others: with C = [C_D C_I] and
T = [-C_D^-1 C_I; 1], every q with C q = c is T z + [d; 0], C_D d = c. In the basis
(z, d, nu) the unknowns d and nu drop out, without any fill, since

    [ A_dd  C_D']^-1      [ 0        C_D^-1               ]
    [ C_D   0   ]      =  [ C_D^-T  -C_D^-T A_dd C_D^-1   ]

has no entry among the d, and nothing else touches nu. What is left is the matrix in z and
the others: constraint embedding (arXiv 2311.13732) in every step of Newton's. It has m
negative eigenvalues less. A leg of HAMR has eight coordinates and six rows: of its 38
coordinates a knot keeps 14.

Which coordinates depend is chosen anew for every matrix by complete pivoting. Rows with a
diagonal that counts (IPOPT's restoration relaxes them), and coordinates whose rows are
dependent, are not reduced: the whole matrix is factorized instead. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kkt.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Diagonals of embedded rows up to this size (IPOPT regularizes by 1e-8) are taken to be
zero; what that leaves is IPOPT's refinement's. */
#define ZERO 1e-7

/* Least pivot of C in terms of its largest entry. */
#define DEPENDENT 1e-9

/* Most columns of a part. Its elimination is dense, and so is what it leaves: a program
without knots, all of whose variables share rows, is better factorized as it is. */
#define WIDEST 64

typedef struct {        /* rows that share columns, and these */
    int m, w, b;        /* number of rows, of columns, and of those that stay */
    int *row, *column;  /* the unknowns */
    int z;              /* the first of its b unknowns in the reduced matrix */
    double *LU;         /* of C, its columns by their pivots (m, w), by rows */
    double *T;          /* columns by z (w, b) */
    int *rowp, *colp;   /* rows and columns of C in the order of the pivots */
} Part;

/* An entry of the matrix: of C; or to be added to the reduced matrix, of which it touches
none of the parts, one, two, or one twice. */
enum { BOUND, DIAGONAL, APART, ONE, TWO, SAME };

struct Embedding {
    int n, nz, *i, *j;
    int parts, bound;    /* number of parts, of embedded rows */
    Part *part;
    int *of, *at;        /* by unknown: its part or -1, and its place there */
    int *to;             /* by unknown that is in no part: its place, reduced */
    char *is_row;        /* by unknown: whether it is an embedded row */
    char *kind;          /* by entry */
    int *slot;           /* by entry: the first of its places among the reduced */
    int *inner, inners;  /* the entries that touch the parts' columns */
    int m, entries;      /* size of the reduced matrix, and number of its entries */
    double *a, *reduced; /* entries */
    double *x, *r, *y;   /* room for solutions */
    Solver *small, *whole, *last; /* last: that of the last matrix, one of the two */
};

static int find(int *up, int k) {
    while (up[k] != k) up[k] = up[up[k]], k = up[k];
    return k;
}

/* --- the pattern ------------------------------------------------------------------- */

/* Rows and columns of the parts; rows that cannot be embedded stay with the others. */
static void find_parts(Embedding *e, int count, const int *rows) {
    int n = e->n;
    int *up = malloc(sizeof(int) * (n + 1)), *sizes = calloc(2 * n + 2, sizeof(int));
    char *column = calloc(n + 1, 1);
    for (int k = 0; k < n; k++) up[k] = k, e->of[k] = -1;
    for (int k = 0; k < count; k++) e->is_row[rows[k]] = 1;
    for (int k = 0; k < e->nz; k++) {
        int i = e->i[k], j = e->j[k];
        if (i == j || e->is_row[i] + e->is_row[j] == 0) continue;
        up[find(up, i)] = find(up, j);
        column[i] |= !e->is_row[i], column[j] |= !e->is_row[j];
        /* Two multipliers that touch are no rows of a Jacobian. */
        if (e->is_row[i] && e->is_row[j]) sizes[2 * find(up, i)] = 2 * n;
    }
    for (int k = 0; k < n; k++) {
        if (e->is_row[k]) sizes[2 * find(up, k)]++;
        if (column[k]) sizes[2 * find(up, k) + 1]++;
    }
    int *number = malloc(sizeof(int) * (n + 1));
    for (int k = 0; k < n; k++) {
        int m = sizes[2 * k], w = sizes[2 * k + 1];
        int is_part = find(up, k) == k && m && m <= w && w <= WIDEST;
        number[k] = is_part ? e->parts++ : -1;
    }
    e->part = calloc(e->parts + 1, sizeof(Part));
    for (int k = 0; k < n; k++) {
        if (number[k] < 0) continue;
        Part *p = &e->part[number[k]];
        int m = sizes[2 * k], w = sizes[2 * k + 1];
        p->b = w - m;
        p->row = malloc(sizeof(int) * m), p->column = malloc(sizeof(int) * w);
        p->rowp = malloc(sizeof(int) * m), p->colp = malloc(sizeof(int) * w);
        p->LU = malloc(sizeof(double) * m * w);
        p->T = malloc(sizeof(double) * (w * p->b + 1));
    }
    for (int k = 0; k < n; k++) {
        int q = number[find(up, k)];
        if (q < 0) e->is_row[k] = 0;
        if (q < 0 || !(e->is_row[k] || column[k])) continue;
        Part *p = &e->part[q];
        e->of[k] = q;
        if (e->is_row[k]) e->at[k] = p->m, p->row[p->m++] = k, e->bound++;
        else e->at[k] = p->w, p->column[p->w++] = k;
    }
    free(up), free(sizes), free(column), free(number);
}

typedef struct {
    int64_t pair;
    int entry;
} Pair;

static int by_pair(const void *a, const void *b) {
    int64_t x = ((const Pair *)a)->pair, y = ((const Pair *)b)->pair;
    return (x > y) - (x < y);
}

/* The pattern of the reduced matrix. Its blocks between two parts, or a part and another
unknown, are full. */
static Solver *reduce_pattern(Embedding *e) {
    int n = e->n, others = 0;
    for (int k = 0; k < n; k++)
        if (e->of[k] < 0) e->to[k] = others++;
    e->m = others;
    for (int p = 0; p < e->parts; p++) e->part[p].z = e->m, e->m += e->part[p].b;
    Pair *pair = malloc(sizeof(Pair) * (e->nz + 1));
    int count = 0;
    for (int k = 0; k < e->nz; k++) {
        int i = e->i[k], j = e->j[k], p = e->of[i], q = e->of[j];
        if (e->is_row[i] || e->is_row[j]) {
            e->kind[k] = i == j ? DIAGONAL : BOUND;
            continue;
        }
        e->kind[k] = p < 0 && q < 0 ? APART : p < 0 || q < 0 ? ONE : p == q ? SAME : TWO;
        if (e->kind[k] != APART) e->inner[e->inners++] = k;
        /* Others first, parts after them; the larger one leads. */
        int64_t s = p < 0 ? e->to[i] : (int64_t)n + p, t = q < 0 ? e->to[j] : (int64_t)n + q;
        pair[count++] = (Pair){MAX(s, t) * 2 * (int64_t)(n + 1) + MIN(s, t), k};
    }
    qsort(pair, count, sizeof(Pair), by_pair);
    e->entries = 0;
    for (int c = 0; c < count; c++) {
        int k = pair[c].entry, p = e->of[e->i[k]], q = e->of[e->j[k]];
        if (c && pair[c].pair == pair[c - 1].pair) {
            e->slot[k] = e->slot[pair[c - 1].entry];
            continue;
        }
        e->slot[k] = e->entries;
        int b = p < 0 ? 1 : e->part[p].b, d = q < 0 ? 1 : e->part[q].b;
        e->entries += e->kind[k] == SAME ? b * (b + 1) / 2 : b * d;
    }
    int *i = malloc(sizeof(int) * (e->entries + 1));
    int *j = malloc(sizeof(int) * (e->entries + 1));
    for (int c = 0; c < count; c++) {
        if (c && pair[c].pair == pair[c - 1].pair) continue;
        int k = pair[c].entry, p = e->of[e->i[k]], q = e->of[e->j[k]], at = e->slot[k];
        int first = e->i[k], second = e->j[k];
        if (q > p) {
            int t = p;
            p = q, q = t, t = first, first = second, second = t;
        }
        /* p is the part with the larger number, -1 where there is none. */
        int b = p < 0 ? 1 : e->part[p].b, d = q < 0 ? 1 : e->part[q].b;
        for (int s = 0; s < b; s++)
            for (int t = 0; t < (p >= 0 && p == q ? s + 1 : d); t++, at++) {
                i[at] = p < 0 ? e->to[first] : e->part[p].z + s;
                j[at] = q < 0 ? e->to[second] : e->part[q].z + t;
            }
    }
    Solver *small = kkt_new(e->m, e->entries, i, j);
    free(pair), free(i), free(j);
    return small;
}

Embedding *embed_new(int n, int nz, const int *i, const int *j, int count,
                     const int *rows) {
    Embedding *e = calloc(1, sizeof(Embedding));
    e->n = n, e->nz = nz;
    e->i = malloc(sizeof(int) * (nz + 1)), e->j = malloc(sizeof(int) * (nz + 1));
    memcpy(e->i, i, sizeof(int) * nz), memcpy(e->j, j, sizeof(int) * nz);
    e->of = malloc(sizeof(int) * (n + 1)), e->at = calloc(n + 1, sizeof(int));
    e->to = calloc(n + 1, sizeof(int)), e->is_row = calloc(n + 1, 1);
    e->kind = calloc(nz + 1, 1), e->slot = calloc(nz + 1, sizeof(int));
    e->inner = malloc(sizeof(int) * (nz + 1));
    find_parts(e, count, rows);
    if (e->parts) {
        e->small = reduce_pattern(e);
        e->a = malloc(sizeof(double) * (nz + 1));
        e->reduced = malloc(sizeof(double) * (e->entries + 1));
        e->x = malloc(sizeof(double) * (n + 1)), e->r = malloc(sizeof(double) * (n + 1));
        e->y = malloc(sizeof(double) * (e->m + 1));
    } else {
        e->whole = kkt_new(n, nz, i, j);
    }
    return e;
}

void embed_free(Embedding *e) {
    for (int p = 0; p < e->parts; p++) {
        Part *part = &e->part[p];
        free(part->row), free(part->column), free(part->rowp), free(part->colp);
        free(part->LU), free(part->T);
    }
    if (e->small) kkt_free(e->small);
    if (e->whole) kkt_free(e->whole);
    free(e->i), free(e->j), free(e->of), free(e->at), free(e->to), free(e->is_row);
    free(e->kind), free(e->slot), free(e->inner), free(e->part), free(e->a), free(e->reduced);
    free(e->x), free(e->r), free(e->y), free(e);
}

/* --- the values ---------------------------------------------------------------------- */

/* C = L U with rows and columns exchanged, and T; 0 where rows are dependent. */
static int depend(Part *p) {
    int m = p->m, w = p->w, b = p->b;
    double *C = p->LU, first = 0;
    for (int k = 0; k < m; k++) p->rowp[k] = k;
    for (int k = 0; k < w; k++) p->colp[k] = k;
    for (int k = 0; k < m; k++) {
        int r = k, c = k;
        for (int s = k; s < m; s++)
            for (int t = k; t < w; t++)
                if (fabs(C[s * w + t]) > fabs(C[r * w + c])) r = s, c = t;
        double most = fabs(C[r * w + c]), swap;
        if (!k) first = most;
        if (!(most > DEPENDENT * first)) return 0;
        for (int t = 0; t < w && r != k; t++)
            swap = C[k * w + t], C[k * w + t] = C[r * w + t], C[r * w + t] = swap;
        for (int s = 0; s < m && c != k; s++)
            swap = C[s * w + k], C[s * w + k] = C[s * w + c], C[s * w + c] = swap;
        int t = p->rowp[k];
        p->rowp[k] = p->rowp[r], p->rowp[r] = t;
        t = p->colp[k], p->colp[k] = p->colp[c], p->colp[c] = t;
        for (int s = k + 1; s < m; s++) {
            double l = C[s * w + k] / C[k * w + k];
            C[s * w + k] = l;
            if (l == 0) continue;
            for (int t = k + 1; t < w; t++) C[s * w + t] -= l * C[k * w + t];
        }
    }
    memset(p->T, 0, sizeof(double) * w * b);
    for (int z = 0; z < b; z++) {
        p->T[p->colp[m + z] * b + z] = 1;
        for (int k = m - 1; k >= 0; k--) {
            double sum = -C[k * w + m + z];
            for (int t = k + 1; t < m; t++) sum -= C[k * w + t] * p->T[p->colp[t] * b + z];
            p->T[p->colp[k] * b + z] = sum / C[k * w + k];
        }
    }
    return 1;
}

/* Fills the reduced matrix; 0 where it does not stand for the whole. */
static int reduce(Embedding *e, const double *a) {
    for (int p = 0; p < e->parts; p++)
        memset(e->part[p].LU, 0, sizeof(double) * e->part[p].m * e->part[p].w);
    for (int k = 0; k < e->nz; k++) {
        if (e->kind[k] == DIAGONAL && !(fabs(a[k]) <= ZERO)) return 0;
        if (e->kind[k] != BOUND) continue;
        int i = e->i[k], j = e->j[k], row = e->is_row[i] ? i : j, column = row == i ? j : i;
        Part *p = &e->part[e->of[row]];
        p->LU[e->at[row] * p->w + e->at[column]] += a[k];
    }
    for (int p = 0; p < e->parts; p++)
        if (!depend(&e->part[p])) return 0;
    memset(e->reduced, 0, sizeof(double) * e->entries);
    for (int k = 0; k < e->nz; k++) {
        int i = e->i[k], j = e->j[k];
        double value = a[k], *to = e->reduced + e->slot[k];
        switch (e->kind[k]) {
        case APART:
            *to += value;
            break;
        case ONE: {
            int column = e->of[i] >= 0 ? i : j;
            Part *p = &e->part[e->of[column]];
            double *t = p->T + e->at[column] * p->b;
            for (int z = 0; z < p->b; z++) to[z] += value * t[z];
            break;
        }
        case TWO: {
            if (e->of[j] > e->of[i]) {
                int t = i;
                i = j, j = t;
            }
            Part *p = &e->part[e->of[i]], *q = &e->part[e->of[j]];
            double *s = p->T + e->at[i] * p->b, *t = q->T + e->at[j] * q->b;
            for (int y = 0; y < p->b; y++, to += q->b) {
                double f = value * s[y];
                if (f == 0) continue;
                for (int z = 0; z < q->b; z++) to[z] += f * t[z];
            }
            break;
        }
        case SAME: {
            Part *p = &e->part[e->of[i]];
            double *s = p->T + e->at[i] * p->b, *t = p->T + e->at[j] * p->b;
            for (int y = 0; y < p->b; y++)
                for (int z = 0; z <= y; z++, to++)
                    *to += value * (i == j ? s[y] * s[z] : s[y] * t[z] + t[y] * s[z]);
        }
        }
    }
    return 1;
}

int embed_factor(Embedding *e, const double *a, double u) {
    if (e->parts && reduce(e, a)) {
        memcpy(e->a, a, sizeof(double) * e->nz);
        e->last = e->small;
        return kkt_factor(e->small, e->reduced, u);
    }
    if (!e->whole) e->whole = kkt_new(e->n, e->nz, e->i, e->j);
    e->last = e->whole;
    return kkt_factor(e->whole, a, u);
}

/* --- solution ------------------------------------------------------------------------ */

/* r -= A x with the entries that touch the parts' columns. */
static void subtract(const Embedding *e, const double *x, double *r) {
    for (int c = 0; c < e->inners; c++) {
        int k = e->inner[c], i = e->i[k], j = e->j[k];
        r[i] -= e->a[k] * x[j];
        if (i != j) r[j] -= e->a[k] * x[i];
    }
}

void embed_solve(Embedding *e, double *b) {
    if (e->last == e->whole) {
        kkt_solve(e->whole, b);
        return;
    }
    double *x = e->x, *r = e->r, *y = e->y;
    /* d of C_D d = c, and what is left of the other rows. */
    memset(x, 0, sizeof(double) * e->n);
    for (int q = 0; q < e->parts; q++) {
        Part *p = &e->part[q];
        int m = p->m, w = p->w;
        for (int k = 0; k < m; k++) {
            double sum = b[p->row[p->rowp[k]]];
            for (int t = 0; t < k; t++) sum -= p->LU[k * w + t] * x[p->column[p->colp[t]]];
            x[p->column[p->colp[k]]] = sum;
        }
        for (int k = m - 1; k >= 0; k--) {
            double sum = x[p->column[p->colp[k]]];
            for (int t = k + 1; t < m; t++)
                sum -= p->LU[k * w + t] * x[p->column[p->colp[t]]];
            x[p->column[p->colp[k]]] = sum / p->LU[k * w + k];
        }
    }
    memcpy(r, b, sizeof(double) * e->n);
    subtract(e, x, r);
    for (int k = 0; k < e->n; k++)
        if (e->of[k] < 0) y[e->to[k]] = r[k];
    for (int q = 0; q < e->parts; q++) {
        Part *p = &e->part[q];
        for (int z = 0; z < p->b; z++) {
            double sum = 0;
            for (int c = 0; c < p->w; c++) sum += p->T[c * p->b + z] * r[p->column[c]];
            y[p->z + z] = sum;
        }
    }
    kkt_solve(e->small, y);
    for (int k = 0; k < e->n; k++)
        if (e->of[k] < 0) x[k] = y[e->to[k]];
    for (int q = 0; q < e->parts; q++) {
        Part *p = &e->part[q];
        for (int c = 0; c < p->w; c++)
            for (int z = 0; z < p->b; z++)
                x[p->column[c]] += p->T[c * p->b + z] * y[p->z + z];
    }
    /* C_D' nu is what the rows of the d lack. */
    memcpy(r, b, sizeof(double) * e->n);
    subtract(e, x, r);
    for (int q = 0; q < e->parts; q++) {
        Part *p = &e->part[q];
        int m = p->m, w = p->w;
        for (int k = 0; k < m; k++) {
            double sum = r[p->column[p->colp[k]]];
            for (int t = 0; t < k; t++) sum -= p->LU[t * w + k] * x[p->row[p->rowp[t]]];
            x[p->row[p->rowp[k]]] = sum / p->LU[k * w + k];
        }
        for (int k = m - 1; k >= 0; k--)
            for (int t = k + 1; t < m; t++)
                x[p->row[p->rowp[k]]] -= p->LU[t * w + k] * x[p->row[p->rowp[t]]];
    }
    memcpy(b, x, sizeof(double) * e->n);
}

int embed_report(const Embedding *e, int *counts, double *sizes) {
    int bound = e->last == e->whole ? 0 : e->bound;
    kkt_report(e->last, counts, sizes);
    counts[0] += bound, counts[6] += bound;
    return bound;
}

void embed_learn(Embedding *e, double share) { kkt_learn(e->last, share); }
