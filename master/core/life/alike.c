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
    return *a->mistake && strcmp(a->mistake_at, b->mistake_at) == 0 &&
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

/* Of one that did not fail: what the others failed of is no mistake of all. */
static bool got_somewhere(const struct trial *t)
{
    return is_training(t) || t->latest || has_completed(t) || trial_state_is_terminal(t->state);
}

static bool failed_like(const struct trial *t, const struct trial *other)
{
    return !has_completed(t) && is_same(t, other);
}

/* Every trial is asked; once in a search's life, where none of it is begun anew. */
static bool failed_alike(const struct trial *t)
{
    const struct exp *e = t->exp;
    for (size_t i = 0; i < e->trials.n; i++) {
        const struct trial *other = e->trials.v[i];
        if (other->mistake ? !failed_like(other, t) : got_somewhere(other))
            return false;
    }
    return true;
}

static bool may_be_held(const struct exp *e)
{
    return e->state == EXP_ACTIVE && e->conf.holds && e->conf.search.kind != SEARCH_SINGLE &&
           e->conf.search.kind != SEARCH_CUSTOM;
}

bool alike_on_failure(struct trial *t, const struct failure *f)
{
    if (t->mistake)
        return false;
    t->mistake = det_strdup(f->exception ? f->exception : "");
    t->mistake_at = det_strdup(f->at ? f->at : "");
    t->exp->mistaken++;
    return t->exp->mistaken == ALIKE_TRIALS && may_be_held(t->exp) && failed_alike(t);
}

void alike_forget(struct trial *t)
{
    t->exp->mistaken -= t->mistake != NULL;
    free(t->mistake);
    free(t->mistake_at);
    t->mistake = t->mistake_at = NULL;
}

char *alike_sentence(const struct trial *t)
{
    return det_asprintf("the first %d of its trials to fail all failed of the same: %s%s%s%s",
                        ALIKE_TRIALS, t->mistake, *t->mistake_at ? " (" : "", t->mistake_at,
                        *t->mistake_at ? ")" : "");
}
