#include "pyframe.h"

#include <stdio.h>
#include <string.h>

bool pyframe_read(const char *text, struct pyframe *ret)
{
    *ret = (struct pyframe){0};
    int n = sscanf(text, " File \"%255[^\"]\", line %d, in %127[^\n]", ret->path, &ret->line,
                   ret->function);
    return n >= 2;
}

void pyframe_write(const struct pyframe *f, const char *file, char *ret, size_t size)
{
    const char *in = *f->function ? ", in " : "";
    snprintf(ret, size, "%s, line %d%s%s", file, f->line, in, f->function);
}

bool pyframe_is_workers(const char *text)
{
    static const char head[] = "Original Traceback (most recent call last):";
    return strncmp(text, head, sizeof head - 1) == 0;
}
