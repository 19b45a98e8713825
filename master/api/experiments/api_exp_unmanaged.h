/* Makes the row of an experiment that runs elsewhere (db_unmanaged.h). Private to api/. */
#ifndef API_API_EXP_UNMANAGED_H
#define API_API_EXP_UNMANAGED_H

#include "det/err.h"
#include <stddef.h>
#include <stdint.h>

struct shell;

/* Borrowed until the answer. */
struct exp_unmanaged {
    int64_t owner_id, project_id, parent_id;
    const char *config, *original_config; /* config: JSON, whole */
    const char *pool;
    const void *model_def;
    size_t model_def_len;
    const char *external_id; /* NULL: none */
};
/* err->code 0: it is there with this id: made, or one that its owner made under this external id
 * before. */
typedef void exp_unmanaged_cb(void *arg, int64_t id, const struct det_err *err);
void exp_unmanaged_make(struct shell *sh, const struct exp_unmanaged *in, exp_unmanaged_cb *cb,
                        void *arg);

#endif
