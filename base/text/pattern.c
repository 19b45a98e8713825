/* Running a pattern's program: all its threads in step, each instruction at most once per byte. */
#include "pattern_code.h"

#include <ctype.h>

struct list {
    int *v;
    size_t n;
};

struct machine {
    const struct pattern *p;
    const char *text;
    size_t len;
    struct list now, next;
    size_t *seen; /* by instruction: the place, plus one, it was last reached at */
    int *stack;
    int64_t *steps;
};

static bool is_word(const struct machine *m, size_t at)
{
    unsigned char c = at < m->len ? (unsigned char)m->text[at] : 0;
    return isalnum(c) || c == '_';
}

static bool is_edge(const struct machine *m, size_t at)
{
    return (at > 0 && is_word(m, at - 1)) != is_word(m, at);
}

static bool condition_holds(const struct machine *m, enum pattern_do what, size_t at)
{
    switch (what) {
    case PATTERN_BEGIN: return at == 0;
    case PATTERN_END: return at == m->len;
    case PATTERN_EDGE: return is_edge(m, at);
    case PATTERN_INSIDE: return !is_edge(m, at);
    case PATTERN_SET: /* these ask nothing of a place */
    case PATTERN_SPLIT:
    case PATTERN_JUMP:
    case PATTERN_FOUND: break;
    }
    return false;
}

/* Adds pc, and all that is reached from it without a byte, to the threads at a place. True: found.
 * The stack is enough: an instruction is put there at most once per way into it, of which there
 * are two at most from each other one. */
static bool enter_thread(struct machine *m, struct list *to, int pc, size_t at)
{
    size_t depth = 0;
    m->stack[depth++] = pc;
    while (depth > 0) {
        pc = m->stack[--depth];
        if (m->seen[pc] == at + 1)
            continue;
        m->seen[pc] = at + 1;
        --*m->steps;
        const struct pattern_op *op = &m->p->code.v[pc];
        if (op->what == PATTERN_FOUND)
            return true;
        if (op->what == PATTERN_SET) {
            to->v[to->n++] = pc;
        } else if (op->what == PATTERN_SPLIT) {
            m->stack[depth++] = pc + op->y;
            m->stack[depth++] = pc + op->x;
        } else if (op->what == PATTERN_JUMP) {
            m->stack[depth++] = pc + op->x;
        } else if (condition_holds(m, op->what, at)) {
            m->stack[depth++] = pc + 1;
        }
    }
    return false;
}

/* The threads that take the byte go on. True: found. */
static bool take_byte(struct machine *m, size_t at)
{
    unsigned char c = (unsigned char)m->text[at];
    *m->steps -= (int64_t)m->now.n;
    m->next.n = 0;
    for (size_t i = 0; i < m->now.n; i++) {
        int pc = m->now.v[i];
        const struct pattern_set *set = &m->p->sets.v[m->p->code.v[pc].x];
        if (pattern_set_has(set, c) && enter_thread(m, &m->next, pc + 1, at + 1))
            return true;
    }
    struct list was = m->now;
    m->now = m->next;
    m->next = was;
    return false;
}

static bool run_machine(struct machine *m)
{
    for (size_t at = 0; *m->steps > 0; at++) {
        const struct pattern *p = m->p;
        bool may_begin = p->may_be_empty ||
                         (at < m->len && pattern_set_has(&p->first, (unsigned char)m->text[at]));
        if (may_begin && enter_thread(m, &m->now, 0, at))
            return true;
        --*m->steps;
        if (at == m->len)
            return false;
        if (m->now.n > 0 && take_byte(m, at))
            return true;
    }
    return false;
}

bool pattern_find(const struct pattern *p, const char *text, size_t len, int64_t *steps)
{
    size_t n = p->code.n;
    det_cleanup(freep) size_t *seen = det_zalloc(n * sizeof *seen);
    det_cleanup(freep) int *ints = det_reallocarray(NULL, 4 * n + 2, sizeof *ints);
    struct machine m = {.p = p,
                        .text = text,
                        .len = len,
                        .now = {.v = ints},
                        .next = {.v = ints + n},
                        .seen = seen,
                        .stack = ints + 2 * n,
                        .steps = steps};
    return run_machine(&m);
}

void pattern_destroy(struct pattern *p)
{
    if (!p)
        return;
    vec_free(&p->code);
    vec_free(&p->sets);
    free(p);
}
