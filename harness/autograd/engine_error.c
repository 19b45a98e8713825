/* The one sticky error: the first failure stays until it is cleared. */
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>

int det_engine_error(const struct det_engine *e, struct det_err *err)
{
    if (e->err.code < 0 && err)
        *err = e->err;
    return e->err.code;
}

void det_engine_clear_error(struct det_engine *e)
{
    e->err.code = 0;
}

int det__keep_error(struct det_engine *e, const struct det_err *err)
{
    if (e->err.code == 0)
        e->err = *err;
    return e->err.code;
}

int det_engine_fail(struct det_engine *e, int code, const char *fmt, ...)
{
    struct det_err err = {.code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err.text, sizeof err.text, fmt, ap);
    va_end(ap);
    return det__keep_error(e, &err);
}
