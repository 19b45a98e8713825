/*
 * A search whose first trials to fail all fail of the same mistake would only repeat it: it is
 * held.
 *
 * The rule. A trial counts once, from its first run that ended with a mistake of its own. When the
 * eighth trial of the search counts, whatever their numbers, the search is held (paused) if all
 * eight ended with the same exception, none has completed a length since, and no other trial of it
 * trains, has a checkpoint or has ended without a mistake. The same: one type and message, whatever
 * the numbers and addresses in it (digits within a word are of the word: conv1), from the same
 * innermost line of the user's own code. This is judged once: the ninth changes nothing, so whoever
 * goes on is not held again. But a search that is paused when the eighth counts is judged by the
 * first that counts after it goes on, and by all that count then. A search of one trial, a custom
 * one, whose client decides, and one whose configuration says `hold_failing_search: false` are
 * never held.
 *
 * Private to master/core.
 */
#ifndef CORE_ALIKE_H
#define CORE_ALIKE_H

#include "model.h"

enum { ALIKE_TRIALS = 8 };

/* A run of t ended with this; true: its search, which is active, is one to be held now.
 * The caller marks t, and its search where it is judged by this. */
bool alike_on_failure(struct trial *t, const struct failure *f);
/* It goes on from its beginning: what it failed of is forgotten, and it counts no more. */
void alike_forget(struct trial *t);
/* Once its trials are read: a row that an older master wrote does not say whether it was judged.
 * That master judged when the eighth counted, and never a search that was paused then. */
void alike_restored(struct exp *e);
/* Why its search is to be held, in the words of t, which counts; a sentence without its end; the
 * caller frees. */
char *alike_sentence(const struct trial *t);

#endif
