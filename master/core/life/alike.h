/*
 * A search whose first trials all fail of the same mistake would only repeat it: it is held.
 *
 * The rule. A trial counts from its first run that ended with a mistake of its own. When the last
 * of the search's first eight trials counts, the search is held (paused) if all eight ended with
 * the same exception, none has completed a length since, and no other trial of it trains or has
 * ended without a mistake. The same: one
 * type and message, whatever the numbers and addresses in it, from the same innermost line of the
 * user's own code. Each of the eight counts once, so whoever goes on is not held again. A search of
 * one trial, a custom one, whose client decides, and one whose configuration says
 * `hold_failing_search: false` are never held.
 *
 * Private to master/core.
 */
#ifndef CORE_ALIKE_H
#define CORE_ALIKE_H

#include "model.h"

enum { ALIKE_TRIALS = 8 };

/* A run of t ended with this; true: its search, which is active, is one to be held now.
 * The caller marks t. */
bool alike_on_failure(struct trial *t, const struct failure *f);
/* It goes on from its beginning: what it failed of is forgotten. */
void alike_forget(struct trial *t);
/* Why e is to be held, a sentence without its end; the caller frees. */
char *alike_sentence(const struct exp *e);

#endif
