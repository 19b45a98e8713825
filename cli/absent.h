/* What Determined's det has and this one has not: recognised, and answered with what to do instead.
 */
#ifndef CLI_ABSENT_H
#define CLI_ABSENT_H

#include "opt.h"

#define ABSENT_MAX 96 /* rows */

struct absent {
    const char *noun, *verb; /* "command|cmd": any of these; "*": every one that is there */
    const char *opt;         /* NULL: the verb itself */
    char letter;             /* of the option; 0: none */
    const char *answer;      /* what to do instead, after "there is no 'det ...' here: " */
};

extern const struct absent absent_table[]; /* ends with a NULL noun */

/* The row of `det NOUN`, or of `det NOUN VERB`; NULL: nobody knows such a thing. verb may be NULL.
 */
const struct absent *absent_find(const char *noun, const char *verb);
/* Appends an OPT_ABSENT for each of the verb's options that are not here; opts has room for
 * ABSENT_MAX. */
size_t absent_options(const char *noun, const char *verb, struct opt *opts);

#endif
