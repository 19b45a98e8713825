#include "alike.h"

#include <ctype.h>
#include <string.h>

static const char *past_digits(const char *p)
{
    while (isdigit((unsigned char)*p))
        p++;
    return p;
}

static const char *past_exponent(const char *p)
{
    const char *q = p + (*p == 'e' || *p == 'E');
    q += q > p && (*q == '-' || *q == '+');
    return q > p && isdigit((unsigned char)*q) ? past_digits(q) : p;
}

/* Past a number: 12, -0.5, 1e-05, 0x7f3a, the 64 of 64x32 and the 10 of 10MiB. NULL: s begins with
 * none. */
static const char *past_number(const char *s)
{
    const char *p = s + (*s == '-');
    if (!isdigit((unsigned char)*p))
        return NULL;
    if (p[0] == '0' && p[1] == 'x' && isxdigit((unsigned char)p[2])) {
        for (p += 2; isxdigit((unsigned char)*p);)
            p++;
        return p;
    }
    p = past_digits(p);
    if (p[0] == '.' && isdigit((unsigned char)p[1]))
        p = past_digits(p + 1);
    return past_exponent(p);
}

/* Whether the text goes on in a word after c, which stands behind a number or not: digits of a word
 * are no number (conv1). One letter behind a number begins none (64x32). */
static bool is_word_after(char c, bool was_word, bool was_number)
{
    bool is_letter = isalpha((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
    return is_letter ? was_word || !was_number : was_word && isdigit((unsigned char)c);
}

/* But for the numbers in them. */
static bool is_same_text(const char *a, const char *b)
{
    bool is_word = false, is_number = false; /* what stands before a and b */
    while (*a && *b) {
        const char *after_a = is_word ? NULL : past_number(a);
        const char *after_b = is_word ? NULL : past_number(b);
        if (after_a && after_b) {
            a = after_a;
            b = after_b;
            is_number = true;
        } else if (*a != *b++) {
            return false;
        } else {
            is_word = is_word_after(*a++, is_word, is_number);
            is_number = false;
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

/* A search that is paused is judged later, by the first that counts once it goes on. */
static bool is_to_be_judged(const struct exp *e)
{
    return !e->is_judged && e->mistaken >= ALIKE_TRIALS && may_be_held(e);
}

bool alike_on_failure(struct trial *t, const struct failure *f)
{
    struct exp *e = t->exp;
    if (t->mistake)
        return false;
    t->mistake = det_strdup(f->exception ? f->exception : "");
    t->mistake_at = det_strdup(f->at ? f->at : "");
    e->mistaken++;
    if (!is_to_be_judged(e))
        return false;
    e->is_judged = true;
    return failed_alike(t);
}

void alike_forget(struct trial *t)
{
    struct exp *e = t->exp;
    e->mistaken -= t->mistake != NULL;
    e->is_judged &= e->mistaken >= ALIKE_TRIALS;
    free(t->mistake);
    free(t->mistake_at);
    t->mistake = t->mistake_at = NULL;
}

void alike_restored(struct exp *e)
{
    if (e->is_judging_unsaid && e->mistaken >= ALIKE_TRIALS)
        e->is_judged = e->held || e->state == EXP_ACTIVE;
}

char *alike_sentence(const struct trial *t)
{
    return det_asprintf("the first %zu of its trials to fail all failed of the same: %s%s%s%s",
                        t->exp->mistaken, t->mistake, *t->mistake_at ? " (" : "", t->mistake_at,
                        *t->mistake_at ? ")" : "");
}
