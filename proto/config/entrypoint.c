#include "entrypoint.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
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

bool entrypoint_has_blanks(const char *e)
{
    char joined[256];
    const char *colon = strchr(e, ':');
    size_t n = colon ? (size_t)(colon - e) : 0;
    while (n > 0 && e[n - 1] == ' ')
        n--;
    const char *class = colon ? colon + 1 + strspn(colon + 1, " ") : "";
    int len = snprintf(joined, sizeof joined, "%.*s:%s", (int)n, e, class);
    return len > 0 && (size_t)len < sizeof joined && (size_t)len < strlen(e) &&
           entrypoint_is_class(joined);
}

bool entrypoint_is_bare_file(const char *e)
{
    size_t n = strlen(e);
    return n > 3 && strcmp(e + n - 3, ".py") == 0 && !strpbrk(e, "/ \t$;&|<>()'\"`");
}
