/* What most verbs called list do: rows of an answer as a table, or as JSON. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli.h"
#include "table.h"

struct listing {
    const char *member; /* of the answer: the list */
    const char *const *heads;
    size_t columns;
    void (*row)(struct table *t, const json_t *one);
    const char *none; /* what is said where there are none */
};
/* Returns an exit code. */
int listing_print(const struct cli *c, const json_t *answer, const struct listing *l);

#endif
