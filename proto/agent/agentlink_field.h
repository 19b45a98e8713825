/* Decoding by table: one row says key, kind, bounds and where the value goes. Internal to the link.
 */
#ifndef AGENTLINK_FIELD_H
#define AGENTLINK_FIELD_H

#include "agentlink.h"

enum link_field_kind {
    LINK_F_STR,  /* const char *, at most max bytes */
    LINK_F_ID,   /* const char *, link_id_is_valid() */
    LINK_F_INT,  /* int, min..max */
    LINK_F_I64,  /* int64_t, min..max */
    LINK_F_NAME, /* int: index in names */
    LINK_F_NEWS, /* as LINK_F_NAME; a name that a newer version may say is index min */
    LINK_F_OBJ,  /* json_t *, an object */
    LINK_F_ARR,  /* json_t *, an array of at most max */
    LINK_F_ANY,  /* json_t * */
};
struct link_field {
    const char *key;
    enum link_field_kind kind;
    size_t offset;
    bool required; /* else absent or null leaves the target as it is */
    int64_t min, max;
    const char *const *names; /* LINK_F_NAME, LINK_F_NEWS: max of them */
};

/* Fills what the rows name in *out; ends at a NULL key. DET_EINVAL names the key. */
DET_MUST int link_fields(const json_t *obj, const struct link_field *rows, void *out,
                         struct det_err *err);
/* An array of integers; *ret is allocated (NULL when empty). */
DET_MUST int link_ints(const json_t *arr, const char *key, int min, int max, int **ret,
                       struct det_err *err);

#endif
