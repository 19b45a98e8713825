#include "cpu_rows.h"

#include <assert.h>

#include "dtype.h"
#include "walk.h"

#define CHUNK 512 /* elements in a buffer */

struct job {
    const struct det_call *c;
    int inputs;
    cpu_row_fn *fn;
    enum det_dtype compute;
    bool direct; /* no input and not the output needs a buffer */
    struct det__walk w;
};

static bool needs_buffer(const struct job *j, const struct det_tensor *t)
{
    return t->dtype != j->compute;
}

static const char *in_at(const struct job *j, int k, int64_t at)
{
    return j->c->in[k]->data + at * (int64_t)det_dtype_size(j->c->in[k]->dtype);
}

static char *out_at(const struct job *j, int64_t at)
{
    return j->c->out[0]->data + at * (int64_t)det_dtype_size(j->c->out[0]->dtype);
}

/* One chunk by way of buffers in the dtype of the computation. */
static void run_chunk(const struct job *j, int64_t n, const int64_t *at)
{
    double buffer[4][CHUNK]; /* of any dtype */
    const void *x[3];
    int64_t step[3];
    const struct det_tensor *y = j->c->out[0];
    for (int k = 0; k < j->inputs; k++) {
        step[k] = det__walk_step(&j->w, k + 1);
        x[k] = in_at(j, k, at[k + 1]);
        if (!needs_buffer(j, j->c->in[k]))
            continue;
        cpu_convert(j->c->in[k]->dtype, x[k], step[k], j->compute, buffer[k], step[k] ? n : 1);
        x[k] = buffer[k];
        step[k] = step[k] ? 1 : 0;
    }
    bool in_place = y->dtype == DET_BOOL || !needs_buffer(j, y);
    j->fn(&j->c->a, n, x, step, in_place ? (void *)out_at(j, at[0]) : buffer[3]);
    if (!in_place)
        cpu_convert(j->compute, buffer[3], 1, y->dtype, out_at(j, at[0]), n);
}

static void run_row(void *arg, int64_t n, const int64_t *at)
{
    const struct job *j = arg;
    int64_t here[DET__WALK_MAX];
    const void *x[3];
    int64_t step[3];
    if (j->direct) {
        for (int k = 0; k < j->inputs; k++) {
            x[k] = in_at(j, k, at[k + 1]);
            step[k] = det__walk_step(&j->w, k + 1);
        }
        j->fn(&j->c->a, n, x, step, out_at(j, at[0]));
        return;
    }
    for (int64_t done = 0; done < n; done += CHUNK) {
        for (int k = 0; k < j->w.tensors; k++)
            here[k] = at[k] + done * det__walk_step(&j->w, k);
        run_chunk(j, n - done < CHUNK ? n - done : CHUNK, here);
    }
}

static void run_part(const void *arg, int64_t from, int64_t to)
{
    struct job j = *(const struct job *)arg;
    det__walk_range(&j.w, from, to, run_row, &j);
}

static enum det_dtype compute_dtype(enum det_dtype dtype)
{
    return dtype == DET_F64 ? DET_F64 : det__is_float(dtype) ? DET_F32 : DET_I64;
}

int cpu_rows(struct det_stream *s, const struct det_call *c, int inputs,
             const struct cpu_row_fns *fns)
{
    struct job j = {.c = c, .inputs = inputs, .compute = compute_dtype(c->in[0]->dtype)};
    const struct det_tensor *t[DET__WALK_MAX] = {c->out[0]};
    j.fn = j.compute == DET_F32 ? fns->f32 : j.compute == DET_F64 ? fns->f64 : fns->i64;
    j.direct = c->out[0]->dtype == DET_BOOL || !needs_buffer(&j, c->out[0]);
    for (int k = 0; k < inputs; k++) {
        t[k + 1] = c->in[k];
        j.direct = j.direct && !needs_buffer(&j, c->in[k]);
    }
    det__walk_init(&j.w, inputs + 1, t);
    assert(j.w.numel == 0 || det__walk_step(&j.w, 0) == 1);
    cpu_parallel(cpu_device(s)->threads, j.w.numel, CPU_GRAIN, run_part, &j);
    return 0;
}
