/* A kernel while a profiler listens: its name, its shapes, its time; and the memory after it. */
#include "engine.h"
#include "span.h"

#include <stdio.h>

/* "float32[2, 3], float32[4, 3] -> float32[2, 4]" */
static void call_text(const struct det_call *c, char *out, size_t n)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < DET_CALL_IN_MAX + DET_CALL_OUT_MAX && at < n; i++) {
        bool result = i >= DET_CALL_IN_MAX;
        const struct det_tensor *t = result ? c->out[i - DET_CALL_IN_MAX] : c->in[i];
        char one[120];
        if (i == DET_CALL_IN_MAX)
            at += (size_t)snprintf(out + at, n - at, " ->");
        if (!t || at >= n)
            continue;
        det__tensor_text(t, one, sizeof one);
        at += (size_t)snprintf(out + at, n - at, "%s%s", at ? " " : "", one);
    }
}

int det__run_told(struct det_engine *e, det_kernel_fn *fn, const struct det_call *c,
                  struct det_err *err)
{
    char text[600];
    int64_t start_ns = span_now_ns();
    int rc = fn(e->stream, c, err);
    if (rc == 0 && !e->backend->host_memory && atomic_load(&span_waiters) > 0)
        rc = e->backend->stream_sync(e->stream, err);
    call_text(c, text, sizeof text);
    span_tell(SPAN_OP, det_kernel_name(c->kernel), text, start_ns);
    span_count("memory", (int64_t)mem_pool_bytes(e->pool));
    return rc;
}
