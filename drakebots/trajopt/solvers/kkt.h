/* What kkt.c, embed.c and ma27.c show each other; Python calls the same functions. */

/* P L D L' P' of sparse symmetric matrices of one pattern. */
typedef struct Solver Solver;

Solver *kkt_new(int n, int nz, const int *i, const int *j);
void kkt_free(Solver *s);

/* Returns 0, or 1 when the matrix is singular. */
int kkt_factor(Solver *s, const double *a, double u);

/* After a factorization that delayed many pivots: the next one plans for them. */
void kkt_learn(Solver *s, double share);

void kkt_solve(Solver *s, double *b);

/* Negative eigenvalues, zero pivots, delayed pivots, fronts, rows of the largest, analyses,
unknowns without a diagonal at first; factor entries and products. */
void kkt_report(const Solver *s, int *counts, double *sizes);

/* The same for matrices of which some rows are eliminated with their own columns. */
typedef struct Embedding Embedding;

Embedding *embed_new(int n, int nz, const int *i, const int *j, int count,
                     const int *rows);
void embed_free(Embedding *e);
int embed_factor(Embedding *e, const double *a, double u);
void embed_learn(Embedding *e, double share);
void embed_solve(Embedding *e, double *b);

/* The counts and sizes of kkt_report, of the matrix as a whole; and the number of rows that
are embedded, 0 where the last matrix could not be reduced. */
int embed_report(const Embedding *e, int *counts, double *sizes);
