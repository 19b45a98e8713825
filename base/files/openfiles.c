#include "openfiles.h"

#include <sys/resource.h>

#define FILES_ENOUGH 65536 /* as LimitNOFILE= of our units */

void openfiles_raise(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= FILES_ENOUGH)
        return;
    l.rlim_cur = l.rlim_max < FILES_ENOUGH ? l.rlim_max : FILES_ENOUGH;
    setrlimit(RLIMIT_NOFILE, &l); /* at worst it stays as it was */
}
