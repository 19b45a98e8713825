#include "entrypoint.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Names with dots up to end, and one name from there on. */
static bool is_name_of(const char *e, const char *end)
{
    for (const char *p = e; *p; p++)
        if (p != end && !isalnum((unsigned char)*p) && *p != '_' && (*p != '.' || p > end))
            return false;
    return end > e && end[1];
}

bool entrypoint_is_class(const char *e)
{
    const char *colon = strchr(e, ':');
    return colon && is_name_of(e, colon);
}

const char *entrypoint_meant_colon(const char *e)
{
    const char *dot = strrchr(e, '.');
    return dot && is_name_of(e, dot) && isupper((unsigned char)dot[1]) ? dot : NULL;
}
