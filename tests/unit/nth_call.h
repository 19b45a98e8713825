/* In the place of the C library's calls: each counts, and the one that it comes to fails once. */
#ifndef DET_NTH_CALL_H
#define DET_NTH_CALL_H

#include <errno.h>
#include <stdbool.h>

static int countdown;      /* 0: nothing fails */
static int says;           /* what the call that fails says */
static const char *struck; /* which one it was */

static bool fails(const char *name)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    struck = name;
    errno = says;
    return true;
}

/* A call that answers `failed` where it fails; linked with --wrap=name. */
#define WRAP(type, failed, name, params, ...)                                                      \
    type __real_##name params;                                                                     \
    type __wrap_##name params;                                                                     \
    type __wrap_##name params                                                                      \
    {                                                                                              \
        return fails(#name) ? failed : __real_##name(__VA_ARGS__);                                 \
    }

#endif
