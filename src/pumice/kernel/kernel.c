/* The plain loop of placing: best node for a task, place it there, next task.
 *
 * Reads the node columns of a snapshot in place.  Tasks of one class get the same answer from every
 * node: refusals and scores that hold for the session, room, and what plugins declare as data.
 * Picks change cells only while a call runs; the caller moves the tasks afterwards.
 *
 * Operations and their order are those of the NumPy expressions in the plugins, so that scores have
 * the same bits: build with -ffp-contract=off.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 64   /* nodes whose best value is kept together */
#define STEP 0.1   /* the smallest amount that counts */
#define KNOWN 64   /* scores of spread that are computed once for all candidates */
enum { CPU, MEMORY, PODS };
enum { IDLE, USED, RELEASING, PIPELINED, VIEW };               /* layers of the books */
enum { END, POD_LIMIT, REQUESTED, PACKED, STRATEGY, COLUMN };  /* terms of a node by itself */
enum { NONE, SOME, AT_MOST };                                  /* what a count must be */
enum { TO_BEST, TO_WORST, STRETCHED, SPREAD };                 /* scores that compare candidates */

typedef struct {                /* pods counted by the domains of nodes */
    const int64_t *codes;       /* domain of each node, below 0 if it is in none (n) */
    int64_t *counts;            /* pods in each domain */
    const uint8_t *eligible;    /* nodes whose pods count (n), or NULL */
} Counter;

typedef struct {                /* a refusal by counts */
    Counter counter;
    const int64_t *present;     /* domains among which the least count is looked for */
    int64_t n_present, rule, skew;
    int64_t most;               /* how many a domain may have, for AT_MOST */
} Count;

typedef struct {                /* counts that a score adds up */
    Counter counter;
    const int64_t *domains;     /* domain of each node by the label, below 0 if it has none (n) */
    int64_t n_domains, factor;
} Part;

typedef struct {                /* a score that compares candidates */
    int64_t kind, weight;
    const int64_t *raw;         /* of each node; for SPREAD whether it has all labels, NULL: all (n) */
    const Part *parts; int64_t n_parts;
} Rank;

typedef struct {                /* one class of equal tasks */
    const double *request, *need, *nonzero, *waiting;          /* (R) (R) (2) (2) */
    const uint8_t *refused;     /* nodes that refuse for the whole session (n), or NULL */
    const double *base;         /* scores that hold for the session (n), or NULL */
    const double *terms;        /* kinds of terms with their numbers, up to END */
    const double *const *columns;   /* scores that plugins keep themselves (n) each, or NULL */
    Count *count;
    const Rank *ranks;
    int64_t n_counts, own_neighbour, n_ranks;
    const Counter *counted;     /* the counts in which its tasks are */
    int64_t n_counted;
    double *value, *top;        /* score of each node, minus infinity if it cannot; best of each block */
    int32_t *ties;              /* how many nodes of a block have the best value */
    int64_t cursor;             /* how much of the log of moved rows the values follow; below 0: none */
} Class;

typedef struct {
    int64_t n, stride, resources, blocks, live;
    int64_t n_valued, most_valued;                             /* classes that hold values */
    double *books, *offer, *nonzero;
    int32_t *pods, *group;      /* nodes of equal cells have the same group; below 0: in none */
    int64_t n_groups;
    Class *classes; int64_t n_classes;
    int32_t *log; int64_t n_log, log_size;
    double *scratch;            /* two numbers of each candidate */
} Kernel;

#define BOOK(k, layer, r, i) ((k)->books[((layer) * (k)->resources + (r)) * (k)->stride + (i)])
#define OFFER(k, r, i) ((k)->offer[(r) * (k)->stride + (i)])
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static double balance(const double *share, int n) {
    double spread;
    if (n < 2) return 100.0;
    if (n == 2) spread = fabs((share[0] - share[1]) / 2.0);
    else {
        double mean = (share[0] + share[1] + share[2]) / 3.0, squares = 0.0;
        for (int j = 0; j < 3; j++) squares += (share[j] - mean) * (share[j] - mean);
        spread = sqrt(squares / 3.0);
    }
    return floor((1.0 - spread) * 100.0);
}

/* Kubernetes' least, most and balanced. */
static double requested(const Kernel *k, const Class *c, int64_t i, const double *t) {
    const int gpu = (int)t[3], n = gpu >= 0 && c->request[gpu] > 0 ? 3 : 2;
    const int rows[3] = { CPU, MEMORY, gpu };
    double free = 0, filled = 0, before[3], after[3], total = 0;
    int basic = 0, kept = 0, asks = 0;
    for (int j = 0; j < n; j++) {
        const int r = rows[j];
        const double offer = OFFER(k, r, i);
        asks |= c->request[r] != 0;
        if (!(offer > 0)) continue;
        if (j < 2) {
            const double wanted = k->nonzero[r * k->stride + i] + c->waiting[r];
            free += floor(MAX(offer - wanted, 0.0) * 100.0 / offer);
            filled += floor(MIN(wanted, offer) * 100.0 / offer);
            basic++;
        }
        const double used = BOOK(k, VIEW, r, i), now = used / offer, then = (used + c->request[r]) / offer;
        before[kept] = MIN(now, 1.0);
        after[kept++] = MIN(then, 1.0);
    }
    if (t[0] && basic) total += t[0] * floor(free / basic);
    if (t[1] && basic) total += t[1] * floor(filled / basic);
    if (t[2] && asks)
        total += t[2] * (50 + floor((50 + balance(after, kept) - balance(before, kept)) / 2));
    return total;
}

/* binpack: weight, sum of weights, number of resources, then row and weight of each. */
static double packed(const Kernel *k, const Class *c, int64_t i, const double *t) {
    double sum = 0;
    for (int j = 0; j < (int)t[2]; j++) {
        const int r = (int)t[3 + 2 * j];
        const double offer = OFFER(k, r, i), after = BOOK(k, USED, r, i) + c->request[r];
        if (!(offer > 0)) continue;
        if (after > offer) return 0.0;
        sum += t[4 + 2 * j] * (after / offer);
    }
    return sum / t[1] * 100.0 * t[0];
}

/* resource-strategy-fit: scale, sum of weights, number of rules, then row, weight, high use or low. */
static double strategy(const Kernel *k, const Class *c, int64_t i, const double *t) {
    double sum = 0;
    for (int j = 0; j < (int)t[2]; j++) {
        const double *rule = t + 3 + 3 * j;
        const int r = (int)rule[0];
        const double offer = OFFER(k, r, i), after = BOOK(k, USED, r, i) + c->request[r];
        if (offer == 0) continue;
        if (after > offer) return 0.0;
        sum += (rule[2] ? after : offer - after) * rule[1] / offer;
    }
    return (t[1] > 0 ? sum / t[1] : sum) * t[0];
}

static double value_of(const Kernel *k, const Class *c, int64_t i) {
    for (int64_t r = 0; r < k->resources; r++) {               /* room now, not promised to others */
        const double idle = BOOK(k, IDLE, r, i);
        if (!(c->need[r] - idle < STEP)) return -INFINITY;
        if (!(c->need[r] - (idle + BOOK(k, RELEASING, r, i) - BOOK(k, PIPELINED, r, i)) < STEP))
            return -INFINITY;
    }
    double total = c->base ? c->base[i] : 0.0;
    for (const double *t = c->terms; *t != END;)
        switch ((int)*t++) {
        case POD_LIMIT:
            if (k->pods[i] >= OFFER(k, PODS, i)) return -INFINITY;
            break;
        case REQUESTED: total += requested(k, c, i, t); t += 4; break;
        case PACKED: total += packed(k, c, i, t); t += 3 + 2 * (int)t[2]; break;
        case STRATEGY: total += strategy(k, c, i, t); t += 3 + 3 * (int)t[2]; break;
        case COLUMN: total += c->columns[(int)*t++][i]; break;
        }
    return total;
}

static void settle(const Kernel *k, Class *c, int64_t b) {
    const int64_t low = b * BLOCK, high = MIN(low + BLOCK, k->n);
    double top = -INFINITY;
    int32_t ties = 0;
    for (int64_t i = low; i < high; i++) top = MAX(c->value[i], top);
    for (int64_t i = low; i < high; i++) ties += c->value[i] == top;
    c->top[b] = top;
    c->ties[b] = ties;
}

/* Ask all nodes; of those that are alike, one. */
static void ask_all(const Kernel *k, Class *c) {
    double *known = k->group && !c->base && !c->columns ? malloc(k->n_groups * sizeof *known) : NULL;
    for (int64_t g = 0; known && g < k->n_groups; g++) known[g] = NAN;
    for (int64_t i = 0; i < k->n; i++) {
        const int32_t g = known ? k->group[i] : -1;
        double found;
        if (c->refused && c->refused[i]) found = -INFINITY;
        else if (g < 0) found = value_of(k, c, i);
        else found = isnan(known[g]) ? (known[g] = value_of(k, c, i)) : known[g];
        c->value[i] = found;
    }
    free(known);
    for (int64_t b = 0; b < k->blocks; b++) settle(k, c, b);
}

static void drop_values(Class *c) {
    free(c->value);
    free(c->top);
    free(c->ties);
    c->value = c->top = NULL;
    c->ties = NULL;
    c->cursor = -1;
}

/* Make room for the values of a class; if there are too many, those of all others go. */
static void hold_values(Kernel *k, Class *c) {
    if (k->n_valued >= k->most_valued) {
        for (int64_t at = 0; at < k->n_classes; at++) drop_values(&k->classes[at]);
        k->n_valued = 0;
    }
    c->value = malloc(k->n * sizeof *c->value);
    c->top = malloc(k->blocks * sizeof *c->top);
    c->ties = malloc(k->blocks * sizeof *c->ties);
    k->n_valued++;
}

static void refresh(Kernel *k, Class *c) {
    if (!c->value) hold_values(k, c);
    if (c->cursor < 0 || k->n_log - c->cursor > k->n) ask_all(k, c);
    else for (int64_t at = c->cursor; at < k->n_log; at++) {
        const int64_t i = k->log[at], b = i / BLOCK;
        if (c->refused && c->refused[i]) continue;
        const double old = c->value[i], new = value_of(k, c, i);
        c->value[i] = new;
        if (new > c->top[b]) { c->top[b] = new; c->ties[b] = 1; }
        else if (old == c->top[b] && new < old) { if (--c->ties[b] == 0) settle(k, c, b); }
        else if (new == c->top[b] && old < new) c->ties[b]++;
    }
    c->cursor = k->n_log;
}

static int64_t draw(int64_t ties, uint64_t *state) {
    if (ties < 2) return 0;
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)((*state >> 33) % (uint64_t)ties);
}

static int64_t best(const Kernel *k, const Class *c, uint64_t *state) {
    double top = -INFINITY;
    int64_t ties = 0;
    for (int64_t b = 0; b < k->blocks; b++) top = MAX(c->top[b], top);
    if (top == -INFINITY) return -1;
    for (int64_t b = 0; b < k->blocks; b++) if (c->top[b] == top) ties += c->ties[b];
    int64_t at = draw(ties, state);
    for (int64_t b = 0;; b++) {
        if (c->top[b] != top) continue;
        if (at >= c->ties[b]) { at -= c->ties[b]; continue; }
        for (int64_t i = b * BLOCK;; i++) if (c->value[i] == top && at-- == 0) return i;
    }
}

static int64_t pods_at(const Counter *counter, int64_t i) {
    return counter->codes[i] < 0 ? 0 : counter->counts[counter->codes[i]];
}

static int is_closed(const Class *c, int64_t i, int alone) {
    for (int64_t j = 0; j < c->n_counts; j++) {
        const Count *count = &c->count[j];
        const int64_t code = count->counter.codes[i], here = pods_at(&count->counter, i);
        if (count->rule == NONE && here > 0) return 1;
        if (count->rule == SOME && !(alone ? code >= 0 : here > 0)) return 1;
        if (count->rule == AT_MOST && (code < 0 || here > count->most)) return 1;
    }
    return 0;
}

/* Whether a class that must be near its own kind finds no pod of it anywhere yet. */
static int is_alone(const Class *c) {
    if (!c->own_neighbour) return 0;
    for (int64_t j = 0; j < c->n_counts; j++)
        for (int64_t d = 0; c->count[j].rule == SOME && d < c->count[j].n_present; d++)
            if (c->count[j].counter.counts[d]) return 0;
    return 1;
}

/* How far counts may go: the least count of a domain, and so many more. */
static void set_limits(Class *c) {
    for (int64_t j = 0; j < c->n_counts; j++) {
        Count *count = &c->count[j];
        int64_t least = count->n_present ? INT64_MAX : 0;
        if (count->rule != AT_MOST) continue;
        for (int64_t d = 0; d < count->n_present; d++)
            least = MIN(count->counter.counts[count->present[d]], least);
        count->most = count->skew + least;
    }
}

/* Add a score by a number of each candidate, scaled to the largest one. */
static void rank_scaled(const Rank *rank, const int32_t *rows, int64_t n, double *total) {
    double most = 0.0;
    for (int64_t at = 0; at < n; at++) most = MAX((double)rank->raw[rows[at]], most);
    if (most <= 0) return;
    for (int64_t at = 0; at < n; at++) {
        const double share = floor(100.0 * (double)rank->raw[rows[at]] / most);
        total[at] += rank->weight * (rank->kind == TO_BEST ? share : 100.0 - share);
    }
}

/* Add a score by weighted counts, stretched from the worst candidate to the best. */
static void rank_stretched(const Rank *rank, const int32_t *rows, int64_t n, double *raw, double *total) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t at = 0; at < n; at++) {
        int64_t sum = 0;
        for (int64_t j = 0; j < rank->n_parts; j++)
            sum += rank->parts[j].factor * pods_at(&rank->parts[j].counter, rows[at]);
        raw[at] = (double)sum;
        low = MIN(raw[at], low);
        high = MAX(raw[at], high);
    }
    if (low == high) return;
    for (int64_t at = 0; at < n; at++)
        total[at] += rank->weight * floor(100.0 * ((raw[at] - low) / (high - low)));
}

/* Return the logarithm of how many domains the candidates are in, and two.  Each has a node. */
static double scale_of(const Kernel *k, const Rank *rank, const Part *part, const int32_t *rows,
                       int64_t n) {
    if (n == k->n && !rank->raw) return log((double)(part->n_domains + 2));
    uint8_t *seen = calloc(part->n_domains, 1);
    int64_t found = 0;
    for (int64_t at = 0; at < n && found < part->n_domains; at++) {
        const int64_t i = rows[at];
        if ((rank->raw && !rank->raw[i]) || seen[part->domains[i]]) continue;
        seen[part->domains[i]] = 1;
        found++;
    }
    free(seen);
    return log((double)(found + 2));
}

/* Add a score by counts in domains, fewer are better; candidates that a label lacks get nothing.
 * No number is below 0, so that a cast rounds down.  Most candidates share few numbers. */
static void rank_spread(const Kernel *k, const Rank *rank, const int32_t *rows, int64_t n,
                        double *raw, double *total) {
    double low = INFINITY, high = -INFINITY, known[KNOWN];
    for (int64_t j = 0; j < rank->n_parts; j++) {
        const Part *part = &rank->parts[j];
        const double scale = scale_of(k, rank, part, rows, n), more = (double)(part->factor - 1);
        for (int64_t at = 0; at < n; at++)
            raw[at] = (j ? raw[at] : 0.0) + ((double)pods_at(&part->counter, rows[at]) * scale + more);
    }
    for (int64_t at = 0; at < n; at++) {
        raw[at] = (double)(int64_t)(raw[at] + 0.5);
        if (rank->raw && !rank->raw[rows[at]]) continue;
        low = MIN(raw[at], low);
        high = MAX(raw[at], high);
    }
    for (int64_t d = 0; d < KNOWN; d++)
        known[d] = high == 0 ? 100.0 : floor(100.0 * (high + low - (double)d) / high);
    for (int64_t at = 0; low < INFINITY && at < n; at++) {
        if (rank->raw && !rank->raw[rows[at]]) continue;
        total[at] += rank->weight * (raw[at] < KNOWN ? known[(int64_t)raw[at]]
                                     : floor(100.0 * (high + low - raw[at]) / high));
    }
}

/* The best of some candidates once they are compared with each other; their list is written. */
static int64_t best_ranked(const Kernel *k, const Class *c, int32_t *rows, int64_t n, uint64_t *state) {
    double *total = k->scratch, *raw = total + k->n, top = -INFINITY;
    int64_t ties = 0;
    if (n < 2) return n ? rows[0] : -1;
    memset(total, 0, n * sizeof *total);
    for (int64_t j = 0; j < c->n_ranks; j++) {
        const Rank *rank = &c->ranks[j];
        if (rank->kind == SPREAD) rank_spread(k, rank, rows, n, raw, total);
        else if (rank->kind == STRETCHED) rank_stretched(rank, rows, n, raw, total);
        else rank_scaled(rank, rows, n, total);
    }
    for (int64_t at = 0; at < n; at++) {
        const double value = c->value[rows[at]] + total[at];
        if (value > top) { top = value; ties = 0; }
        if (value == top) rows[ties++] = rows[at];
    }
    return rows[draw(ties, state)];
}

/* The best of the nodes that are allowed and that no count closes.  Nodes that refuse are marked in
 * ``shut`` if there is one, and stay out. */
static int64_t best_open(const Kernel *k, Class *c, const uint8_t *allowed, uint8_t *shut,
                         int32_t *ties, uint64_t *state) {
    double top = -INFINITY;
    int64_t n = 0;
    const int alone = is_alone(c), ranked = c->n_ranks > 0;
    set_limits(c);
    for (int64_t i = 0; i < k->n; i++) {
        const double value = c->value[i];
        if (value == -INFINITY || (allowed && !allowed[i]) || (shut && shut[i])) continue;
        if (!shut && !ranked && value < top) continue;
        if (c->n_counts && is_closed(c, i, alone)) {
            if (shut) shut[i] = 1;
            continue;
        }
        if (!ranked && value > top) { top = value; n = 0; }
        if (ranked || value == top) ties[n++] = (int32_t)i;
    }
    if (ranked) return best_ranked(k, c, ties, n, state);
    return n ? ties[draw(n, state)] : -1;
}

/* Count a task in on a node, or out. */
static void count_task(const Kernel *k, const Class *c, int64_t i, int64_t sign) {
    for (int64_t j = 0; k->live && j < c->n_counted; j++) {
        const Counter *counter = &c->counted[j];
        if (counter->codes[i] >= 0 && (!counter->eligible || counter->eligible[i]))
            counter->counts[counter->codes[i]] += sign;
    }
}

static void log_row(Kernel *k, int64_t i) {
    if (k->n_log == k->log_size)
        k->log = realloc(k->log, (k->log_size *= 2) * sizeof *k->log);
    k->log[k->n_log++] = (int32_t)i;
    if (k->group) k->group[i] = -1;
}

/* Put a task on a node; the cells that change are saved for ``take_back`` before. */
static void place(Kernel *k, const Class *c, int64_t i, double *saved) {
    for (int64_t r = 0; r < k->resources; r++) {
        *saved++ = BOOK(k, IDLE, r, i);
        *saved++ = BOOK(k, USED, r, i);
        *saved++ = BOOK(k, VIEW, r, i);
        BOOK(k, IDLE, r, i) -= c->request[r];
        BOOK(k, USED, r, i) += c->request[r];
        if (k->live) BOOK(k, VIEW, r, i) += c->request[r];
    }
    for (int64_t r = 0; r < 2; r++) {
        *saved++ = k->nonzero[r * k->stride + i];
        if (k->live) k->nonzero[r * k->stride + i] += c->nonzero[r];
    }
    k->pods[i] += k->live != 0;
    count_task(k, c, i, 1);
    log_row(k, i);
}

static void take_back(Kernel *k, const Class *c, int64_t i, const double *saved) {
    for (int64_t r = 0; r < k->resources; r++) {
        BOOK(k, IDLE, r, i) = *saved++;
        BOOK(k, USED, r, i) = *saved++;
        BOOK(k, VIEW, r, i) = *saved++;
    }
    for (int64_t r = 0; r < 2; r++) k->nonzero[r * k->stride + i] = *saved++;
    k->pods[i] -= k->live != 0;
    count_task(k, c, i, -1);
    log_row(k, i);
}

/* Pick nodes for tasks of some classes in turn, up to the first that finds none; return how many.
 * ``draws`` gets the state of the generator after each.  With ``shut`` (n) nodes that a count closes
 * once stay closed. */
int64_t kernel_pick(Kernel *k, const int64_t *classes, int64_t n, const uint8_t *allowed,
                    uint8_t *shut, int64_t *nodes, uint64_t *draws, uint64_t *state) {
    const int64_t cells = 3 * k->resources + 2;
    double *saved = malloc(n * cells * sizeof *saved);
    int32_t *ties = malloc(k->n * sizeof *ties);
    int64_t done = 0;
    for (; done < n; done++) {
        Class *c = &k->classes[classes[done]];
        refresh(k, c);
        const int64_t i = allowed || c->n_counts || c->n_ranks
                              ? best_open(k, c, allowed, shut, ties, state)
                              : best(k, c, state);
        if (i < 0) break;
        nodes[done] = i;
        draws[done] = *state;
        if (n > 1) place(k, c, i, saved + done * cells);
    }
    for (int64_t at = done - 1; n > 1 && at >= 0; at--)
        take_back(k, &k->classes[classes[at]], nodes[at], saved + at * cells);
    free(saved);
    free(ties);
    return done;
}

Kernel *kernel_open(int64_t n, int64_t stride, int64_t resources, int64_t live, int64_t most_valued,
                    double *books, double *offer, double *nonzero, int32_t *pods) {
    Kernel *k = calloc(1, sizeof *k);
    *k = (Kernel){ .n = n, .stride = stride, .resources = resources, .live = live,
                   .most_valued = most_valued, .blocks = (n + BLOCK - 1) / BLOCK, .books = books, .offer = offer,
                   .nonzero = nonzero, .pods = pods, .log_size = 1024 };
    k->log = malloc(k->log_size * sizeof *k->log);
    k->scratch = malloc(2 * n * sizeof *k->scratch);
    return k;
}

/* Say which nodes have equal cells; the array is written. */
void kernel_group(Kernel *k, int32_t *group, int64_t n_groups) {
    k->group = group;
    k->n_groups = n_groups;
}

int64_t kernel_class(Kernel *k, const double *request, const double *need, const double *nonzero,
                     const double *waiting, const uint8_t *refused, const double *base,
                     const double *terms, const double *const *columns, Count *count,
                     const Rank *ranks, int64_t n_counts, int64_t own_neighbour, int64_t n_ranks) {
    if (!(k->n_classes & (k->n_classes - 1)))
        k->classes = realloc(k->classes, MAX(2 * k->n_classes, 1) * sizeof *k->classes);
    k->classes[k->n_classes] = (Class){
        .request = request, .need = need, .nonzero = nonzero, .waiting = waiting,
        .refused = refused, .base = base, .terms = terms, .columns = columns,
        .count = count, .ranks = ranks,
        .n_counts = n_counts, .own_neighbour = own_neighbour, .n_ranks = n_ranks, .cursor = -1 };
    return k->n_classes++;
}

/* Say in which counts the tasks of a class are. */
void kernel_counted(Kernel *k, int64_t number, const Counter *counted, int64_t n) {
    k->classes[number].counted = counted;
    k->classes[number].n_counted = n;
}

/* Bring the values of a class up to date and return them (n). */
const double *kernel_values(Kernel *k, int64_t number) {
    refresh(k, &k->classes[number]);
    return k->classes[number].value;
}

void kernel_moved(Kernel *k, const int64_t *rows, int64_t n) {
    for (int64_t at = 0; at < n; at++) log_row(k, rows[at]);
}

void kernel_close(Kernel *k) {
    for (int64_t at = 0; at < k->n_classes; at++) drop_values(&k->classes[at]);
    free(k->classes);
    free(k->log);
    free(k->scratch);
    free(k);
}
