#include "alike.h"

#include <ctype.h>
#include <string.h>

/* Past a number: 12, -0.5, 1e-05, 0x7f3a. NULL: s begins with none. */
static const char *past_number(const char *s)
{
    const char *p = s + (*s == '-');
    if (!isdigit((unsigned char)*p))
        return NULL;
    while (isalnum((unsigned char)*p) || *p == '.' ||
           ((*p == '-' || *p == '+') && (p[-1] == 'e' || p[-1] == 'E')))
        p++;
    return p;
}

/* But for the numbers in them. */
static bool is_same_text(const char *a, const char *b)
{
    while (*a && *b) {
        const char *after_a = past_number(a), *after_b = past_number(b);
        if (after_a && after_b) {
            a = after_a;
            b = after_b;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static bool is_same(const struct trial *a, const struct trial *b)
{
    return b->mistake && *a->mistake && strcmp(a->mistake_at, b->mistake_at) == 0 &&
           is_same_text(a->mistake, b->mistake);
}

static bool has_completed(const struct trial *t)
{
    return t->op == OP_DONE || t->op == OP_REDO || t->op_last > 0;
}

static bool is_training(const struct trial *t)
{
    return t->alloc && t->speed.run_id == t->run_id && t->speed.units > 0;
}

/* One that did not fail: what the first ones failed of is no mistake of all. */
static bool got_somewhere(const struct trial *t)
{
    return !t->mistake &&
           (is_training(t) || t->latest || has_completed(t) || trial_state_is_terminal(t->state));
}

static bool failed_like(const struct trial *t, const struct trial *other)
{
    return t->mistake && !has_completed(t) && is_same(t, other);
}

static bool failed_alike(const struct exp *e)
{
    if (e->trials.n < ALIKE_TRIALS)
        return false;
    for (size_t i = 0; i < ALIKE_TRIALS; i++)
        if (!failed_like(e->trials.v[i], e->trials.v[0]))
            return false;
    for (size_t i = ALIKE_TRIALS; i < e->trials.n; i++)
        if (got_somewhere(e->trials.v[i]))
            return false;
    return true;
}

static bool may_be_held(const struct exp *e)
{
    return e->state == EXP_ACTIVE && e->conf.holds && e->conf.search.kind != SEARCH_SINGLE &&
           e->conf.search.kind != SEARCH_CUSTOM;
}

static bool is_one_of_the_first(const struct trial *t)
{
    for (size_t i = 0; i < t->exp->trials.n && i < ALIKE_TRIALS; i++)
        if (t->exp->trials.v[i] == t)
            return true;
    return false;
}

bool alike_on_failure(struct trial *t, const struct failure *f)
{
    if (t->mistake)
        return false;
    t->mistake = det_strdup(f->exception ? f->exception : "");
    t->mistake_at = det_strdup(f->at ? f->at : "");
    return may_be_held(t->exp) && is_one_of_the_first(t) && failed_alike(t->exp);
}

void alike_forget(struct trial *t)
{
    free(t->mistake);
    free(t->mistake_at);
    t->mistake = t->mistake_at = NULL;
}

char *alike_sentence(const struct exp *e)
{
    const struct trial *t = e->trials.v[0];
    return det_asprintf("its first %d trials all failed of the same: %s%s%s%s", ALIKE_TRIALS,
                        t->mistake, *t->mistake_at ? " (" : "", t->mistake_at,
                        *t->mistake_at ? ")" : "");
}
