/*
 * What POST /experiments answers of a new experiment, from what the request and the core know of
 * it: the same as GET reads from its row. Private to api/.
 */
#ifndef API_API_EXP_MADE_H
#define API_API_EXP_MADE_H

#include "buf.h"
#include "expconf.h"
#include "shell.h"

struct exp_made {
    int64_t id;
    const struct expconf *conf;
    const char *place; /* ORIGIN_DOC of db_exp_origin */
    const char *original_config;
    size_t model_def_len;
};
/* Appends experiment.v1.Experiment. False: the core does not have it any more, ask the database. */
bool exp_made_put(struct buf *out, struct shell *sh, const struct exp_made *m);
/* Its keys with nothing in them, for one that was only validated: the bindings want every key. */
json_t *exp_made_zero(json_t *config);

#endif
