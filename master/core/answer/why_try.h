/* Trying changes on a pool, and undoing them. Private to master/core. */
#ifndef CORE_WHY_TRY_H
#define CORE_WHY_TRY_H

#include "model.h"

enum why_outcome { WHY_STILL_WAITS, WHY_MAKES_ROOM, WHY_STARTS };

/* What a pass would do for the first pending request of g. */
enum why_outcome why_try(struct core *c, struct group *g);
/* How many passes one question may take, at most `most`: fewer where passes are long, so that the
 * master never stands still for an answer. */
int why_passes(const struct group *g, int most);
/* Takes a placed allocation out of what passes see, and puts it back; in between the index of
 * agents has its slots free until undone. */
void why_leave(struct core *c, struct alloc *gone);
void why_return(struct core *c, struct alloc *gone);

/* Appends suggestions {"text", "command"} that were found to help. */
void why_suggest(struct core *c, struct group *g, json_t *suggestions);

#endif
