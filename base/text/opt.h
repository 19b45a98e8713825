/* Command-line options of the daemons and det: one const table, GNU long options, "--key=value" and
 * "--key value", short options; errors name the option and list the near ones. */
#ifndef BASE_OPT_H
#define BASE_OPT_H

#include "buf.h"
#include "det/err.h"
#include <stdbool.h>

enum opt_kind {
    OPT_FLAG,
    OPT_STR,
    OPT_INT,
    OPT_COUNT, /* an OPT_INT of 1 or more */
    OPT_STR_LIST,
    OPT_ABSENT /* recognised, but not there: `help` says what to do instead */
};
struct opt {
    const char *name; /* "max-length"; "" and NULL end the table */
    char short_name;  /* 0: none */
    enum opt_kind kind;
    void *target;    /* bool * | const char ** | int64_t * | struct opt_list * */
    const char *arg; /* placeholder in the help: "PATH" */
    const char *help;
};
struct opt_list {
    const char **v;
    size_t n;
};
/* Parses argv[first..]; positionals, "-" and "-1" too, are gathered into *pos (borrowed). "--"
 * ends options. DET_EINVAL names the culprit. */
DET_MUST int opt_parse(const struct opt *table, int argc, char **argv, int first,
                       struct opt_list *pos, struct det_err *err);
void opt_help(const struct opt *table, struct buf *out);
void opt_list_finish(struct opt_list *l);

#endif
