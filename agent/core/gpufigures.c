#include "gpufigures.h"

#include "mem.h"
#include "vec.h"

struct figure {
    struct link_gpu last;
    double util_sum; /* percent */
    unsigned util_n, looks;
    uint64_t busy_ms; /* when it last had work, or no task */
};
struct gpufigures {
    VEC(struct figure) v;
};

struct gpufigures *gpufigures_create(void)
{
    return det_zalloc(sizeof(struct gpufigures));
}

void gpufigures_destroy(struct gpufigures *f)
{
    if (!f)
        return;
    vec_free(&f->v);
    free(f);
}

static struct figure *figure_of(struct gpufigures *f, int slot, uint64_t now_ms)
{
    for (size_t i = 0; i < f->v.n; i++)
        if (f->v.v[i].last.slot == slot)
            return &f->v.v[i];
    vec_push(&f->v, ((struct figure){.last.slot = slot, .busy_ms = now_ms}));
    return &f->v.v[f->v.n - 1];
}

static int round_figure(double value)
{
    return value >= 0 && value <= 1e9 ? (int)(value + 0.5) : -1;
}

void gpufigures_add(struct gpufigures *f, int slot, const struct gpu_sight *s, bool has_task,
                    uint64_t now_ms)
{
    if (s->lost || s->mem_total > INT64_MAX / 2 || s->mem_used > s->mem_total)
        return;
    struct figure *x = figure_of(f, slot, now_ms);
    bool is_idle = has_task && s->utilisation >= 0 && s->utilisation < LINK_GPU_IDLE_PERCENT;
    if (!is_idle)
        x->busy_ms = now_ms;
    if (s->utilisation >= 0 && s->utilisation <= 100) {
        x->util_sum += s->utilisation;
        x->util_n++;
    }
    x->looks++;
    x->last = (struct link_gpu){
        .slot = slot,
        .mem_used = s->mem_total > 0 ? (int64_t)s->mem_used : -1,
        .mem_total = s->mem_total > 0 ? (int64_t)s->mem_total : -1,
        .temp_c = round_figure(s->temperature_c),
        .power_mw = round_figure(s->power_w * 1000),
        .sm_mhz = round_figure(s->sm_mhz),
        .mem_mhz = round_figure(s->mem_mhz),
        .idle_s = (int64_t)((now_ms - x->busy_ms) / 1000),
    };
}

json_t *gpufigures_take(struct gpufigures *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->v.n; i++) {
        struct figure *x = &f->v.v[i];
        if (x->looks == 0)
            continue;
        x->last.util_percent = x->util_n > 0 ? round_figure(x->util_sum / x->util_n) : -1;
        json_array_append_new(list, link_gpu_json(&x->last));
        x->util_sum = x->util_n = x->looks = 0;
    }
    if (json_array_size(list) > 0)
        return list;
    json_decref(list);
    return NULL;
}
