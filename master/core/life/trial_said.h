/* What a trial's searcher makes of it, in a sentence. Private to master/core. */
#ifndef CORE_TRIAL_SAID_H
#define CORE_TRIAL_SAID_H

#include "model.h"
#include "search_explain.h"

/* The names that sentences about the trials of e use. */
struct search_names exp_search_names(const struct exp *e);
/* Appends a sentence about "it", without its end: why it has nothing more to do. */
void trial_said(const struct trial *t, struct buf *out);

#endif
