/* The face of MA27, for IPOPT: its four functions (Duff and Reid 1982).

IPOPT asks for the number of negative eigenvalues of every factorization and keeps
everything else to itself. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kkt.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Largest threshold of pivots that IPOPT may ask for, and that for matrices that come out
with fewer negative eigenvalues than they can have. */
#define CAREFUL 1e-6
#define STRICT 0.01

/* How many Hessians are taken to be indefinite after one that was. */
#define SKIPS 3

typedef struct Face {
    Embedding *matrix;
    int n, nz, *i, *j;
    uint64_t sides; /* of the last matrix: a hash of what is off its diagonal, ... */
    int filled;     /* ... and how much of that is not zero */
    int indefinite; /* whether the last Hessian that was tried as it is failed, ... */
    int skipped;    /* ... and how many were not tried since */
    int trying;     /* whether this one is tried as it is */
    struct Face *next;
} Face;

static __thread Face *mine; /* this thread's, to be freed after the solve */
static __thread int doubts; /* number of this thread's factors with too few signs */

static __thread struct {
    int n, count;
    const int *rows;
} embedded; /* the rows to embed of this thread's matrices of n unknowns */

void kkt_embed(int n, int count, const int *rows) {
    embedded.n = n, embedded.count = count, embedded.rows = rows;
}

/* How many factorizations since the last release have come out with fewer negative
eigenvalues than they can have, at any threshold. */
int kkt_doubts(void) { return doubts; }

/* Frees the factors of this thread; embedded rows have to be named anew. */
void kkt_release(void) {
    doubts = 0, embedded.count = 0;
    while (mine) {
        Face *next = mine->next;
        embed_free(mine->matrix);
        free(mine->i), free(mine->j), free(mine), mine = next;
    }
}

void ma27id_(int *icntl, double *cntl) {
    memset(icntl, 0, sizeof(int) * 30), memset(cntl, 0, sizeof(double) * 5);
}

/* IPOPT keeps `ikeep` between the analysis and the factorizations, and `iw` between
those and the solves: they carry the address. */
void ma27ad_(int *n, int *nz, const int *irn, const int *icn, int *iw, int *liw,
             int *ikeep, int *iw1, int *nsteps, int *iflag, int *icntl, double *cntl,
             int *info, double *ops) {
    Face *f = calloc(1, sizeof(Face));
    f->n = *n, f->nz = *nz;
    f->i = malloc(sizeof(int) * (*nz + 1)), f->j = malloc(sizeof(int) * (*nz + 1));
    for (int k = 0; k < *nz; k++) f->i[k] = irn[k] - 1, f->j[k] = icn[k] - 1;
    int count = embedded.n == *n ? embedded.count : 0;
    f->matrix = embed_new(*n, *nz, f->i, f->j, count, embedded.rows);
    f->next = mine, mine = f;
    memcpy(ikeep, &f, sizeof(f));
    memset(info, 0, sizeof(int) * 20);
    info[4] = MAX(*nz, 16), info[5] = MAX(*nz, 16);
    *nsteps = 1, *ops = 0;
    (void)iw, (void)liw, (void)iw1, (void)iflag, (void)icntl, (void)cntl;
}

/* IPOPT tries the Hessian of every iteration as it is, and with a multiple of the identity
where the number of negative eigenvalues is wrong: mostly in stretches of iterations. So
after one that was wrong some are called so without a look, and IPOPT begins with the third
of what it added last. A correction changes the diagonal alone. */
static int skips(Face *f, const double *a) {
    uint64_t hash = 14695981039346656037u, bits;
    int filled = 0;
    for (int k = 0; k < f->nz; k++)
        if (f->i[k] != f->j[k]) {
            memcpy(&bits, a + k, sizeof bits);
            hash = (hash ^ bits) * 1099511628211u;
            filled += a[k] != 0;
        }
    int first = hash != f->sides;
    /* Systems for multipliers alone have no Hessian. */
    int other = filled < 0.9 * f->filled;
    if (other) return 0;
    f->sides = hash, f->filled = filled;
    if (!first) return 0;
    if (f->indefinite && f->skipped < SKIPS) return f->skipped++, 1;
    f->indefinite = 0, f->skipped = 0;
    f->trying = 1;
    return 0;
}

void ma27bd_(int *n, int *nz, const int *irn, const int *icn, double *a, int *la, int *iw,
             int *liw, int *ikeep, int *nsteps, int *maxfrt, int *iw1, int *icntl,
             double *cntl, int *info) {
    Face *f;
    memcpy(&f, ikeep, sizeof(f));
    memcpy(iw, &f, sizeof(f));
    memset(info, 0, sizeof(int) * 20);
    *maxfrt = 1;
    f->trying = 0;
    if (skips(f, a)) {
        info[14] = f->n; /* more than any number of rows: never taken for factors */
        return;
    }
    /* A KKT matrix has at least as many negative eigenvalues as rows that have no
    diagonal; fewer are rounding. IPOPT's own remedy, a threshold that rises for good,
    delays more and more pivots, so it is capped. */
    double u = cntl[0] > 0 ? MIN(cntl[0], CAREFUL) : 1e-8, sizes[2];
    int counts[7], singular = embed_factor(f->matrix, a, u);
    embed_report(f->matrix, counts, sizes);
    if (counts[0] < counts[6]) {
        singular = embed_factor(f->matrix, a, STRICT);
        embed_report(f->matrix, counts, sizes);
        doubts += counts[0] < counts[6];
    }
    info[14] = counts[0];
    if (f->trying) f->indefinite = counts[0] > counts[6];
    if (singular) info[0] = -5, info[1] = f->n - counts[1];
    embed_learn(f->matrix, 0.01);
    (void)n, (void)nz, (void)irn, (void)icn, (void)la, (void)liw, (void)nsteps;
    (void)iw1, (void)icntl;
}

void ma27cd_(int *n, double *a, int *la, int *iw, int *liw, double *w, int *maxfrt,
             double *rhs, int *iw1, int *nsteps, int *icntl, double *cntl) {
    Face *f;
    memcpy(&f, iw, sizeof(f));
    embed_solve(f->matrix, rhs);
    (void)n, (void)a, (void)la, (void)liw, (void)w, (void)maxfrt, (void)iw1;
    (void)nsteps, (void)icntl, (void)cntl;
}
