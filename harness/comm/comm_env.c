/* comm_options from a task's environment (the names are torchrun's and Determined's). */
#include "comm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static int env_int(const char *name, int fallback, int min, int max, int *ret, struct det_err *err)
{
    const char *s = getenv(name);
    *ret = fallback;
    if (!s || !*s)
        return 0;
    char *end;
    errno = 0;
    long v = strtol(s, &end, 10);
    if (errno || *end || v < min || v > max)
        return det_fail(err, DET_EINVAL, "%s=%.40s: not a number from %d to %d", name, s, min, max);
    *ret = (int)v;
    return 0;
}

static const char *env_str(const char *name)
{
    const char *s = getenv(name);
    return s && *s ? s : NULL;
}

int comm_options_from_env(struct comm_options *ret, struct det_err *err)
{
    *ret = (struct comm_options){0};
    int rc = env_int("WORLD_SIZE", 1, 1, 1 << 20, &ret->size, err);
    if (rc == 0)
        rc = env_int("RANK", 0, 0, ret->size - 1, &ret->rank, err);
    if (rc == 0)
        rc = env_int("LOCAL_WORLD_SIZE", ret->size, 1, ret->size, &ret->local_size, err);
    if (rc == 0)
        rc = env_int("LOCAL_RANK", ret->rank % ret->local_size, 0, ret->local_size - 1,
                     &ret->local_rank, err);
    if (rc == 0)
        rc = env_int("C10D_PORT", 29400, 1, 65535, &ret->port, err);
    int timeout_s = 0;
    if (rc == 0)
        rc = env_int("DET_COLLECTIVE_TIMEOUT_S", 0, 1, 2000000, &timeout_s, err);
    ret->timeout_ms = timeout_s * 1000;
    ret->chief_host = env_str("DET_CHIEF_IP");
    ret->secret = env_str("DET_SESSION_TOKEN");
    return rc;
}
