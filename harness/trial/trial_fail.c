/* How a trial fails: the first reason stays. */
#include "trial_context.h"

#include <stdarg.h>
#include <stdio.h>

static void keep_failure(struct det_trial_context *ctx, int code, const char *fmt, va_list ap)
{
    char text[DET_ERR_TEXT_MAX];
    if (det_trial_failed(ctx))
        return;
    vsnprintf(text, sizeof text, fmt, ap);
    det_fail(&ctx->err, code, "%s", text);
}

void trial_fail(struct det_trial_context *ctx, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_failure(ctx, code, fmt, ap);
    va_end(ap);
}

void det_trial_fail(struct det_trial_context *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_failure(ctx, DET_EINVAL, fmt, ap);
    va_end(ap);
}

void det_trial_invalid_hp(struct det_trial_context *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    keep_failure(ctx, DET_EINVALIDHP, fmt, ap);
    va_end(ap);
}

bool det_trial_failed(const struct det_trial_context *ctx)
{
    return ctx->err.code != 0 || (ctx->engine && det_engine_error(ctx->engine, NULL) != 0);
}

struct det_err *det_trial_err(struct det_trial_context *ctx)
{
    return det_trial_failed(ctx) ? &ctx->scratch : &ctx->err;
}

int trial_check(struct det_trial_context *ctx, struct det_err *err)
{
    if (ctx->err.code != 0)
        return det_fail_as(err, ctx->err.code, &ctx->err);
    return det_engine_error(ctx->engine, err);
}
