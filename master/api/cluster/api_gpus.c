#include "api_gpus.h"

#include "agents.h"
#include "api_util.h"
#include "prom.h"
#include <inttypes.h>
#include <stdio.h>

enum { IDLE_S = 600 }; /* from then on it is said of a trial */

json_t *gpus_json(struct shell *sh, const char *agent_id, int slot)
{
    struct link_gpu g;
    if (!agents_gpu(sh->agents, agent_id, slot, &g))
        return NULL;
    json_t *j = json_object();
    const struct {
        const char *key;
        double value, unit;
    } all[] = {{"utilizationPercent", g.util_percent, 1},
               {"memoryUsedBytes", (double)g.mem_used, 1},
               {"memoryTotalBytes", (double)g.mem_total, 1},
               {"temperatureCelsius", g.temp_c, 1},
               {"powerWatts", g.power_mw, 1000},
               {"smClockMhz", g.sm_mhz, 1},
               {"memoryClockMhz", g.mem_mhz, 1},
               {"idleSeconds", (double)g.idle_s, 1}};
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++)
        if (all[i].value >= 0)
            json_set(j, all[i].key, json_double(all[i].value / all[i].unit));
    return j;
}

static void tell_idle(struct shell *sh, const struct core_container_view *k, struct buf *out)
{
    struct link_gpu g;
    for (size_t i = 0; i < k->slots_n; i++)
        if (agents_gpu(sh->agents, k->agent_id, k->slots[i], &g) && g.idle_s >= IDLE_S)
            buf_addf(out,
                     "; the GPU of slot %d of agent %s has had no work for %" PRId64
                     " min (used less than %d %%)",
                     g.slot, k->agent_id, g.idle_s / 60, LINK_GPU_IDLE_PERCENT);
}

void gpus_tell_idle(struct shell *sh, int64_t trial_id, json_t *answer)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    struct core_trial_view t;
    struct core_container_view k;
    if (!core_trial_get(api_core(sh), trial_id, &t) || !t.alloc_id)
        return;
    buf_addf(&b, "%s", json_str(answer, "text", ""));
    for (size_t i = 0; core_alloc_container(api_core(sh), t.alloc_id, i, &k); i++)
        tell_idle(sh, &k, &b);
    json_set(answer, "text", json_string(buf_str(&b)));
}

struct family {
    const char *name, *help;
    double (*value)(const struct link_gpu *g); /* negative: not known */
};

static double util_of(const struct link_gpu *g)
{
    return g->util_percent;
}

static double used_of(const struct link_gpu *g)
{
    return (double)g->mem_used;
}

static double total_of(const struct link_gpu *g)
{
    return (double)g->mem_total;
}

static double temp_of(const struct link_gpu *g)
{
    return g->temp_c;
}

static double power_of(const struct link_gpu *g)
{
    return g->power_mw / 1000.0;
}

static double sm_of(const struct link_gpu *g)
{
    return g->sm_mhz;
}

static double mem_of(const struct link_gpu *g)
{
    return g->mem_mhz;
}

static double idle_of(const struct link_gpu *g)
{
    return (double)g->idle_s;
}

static const struct family families[] = {
    {"det_gpu_utilization_percent", "Share of the time in which a kernel ran.", util_of},
    {"det_gpu_memory_used_bytes", "Memory in use.", used_of},
    {"det_gpu_memory_bytes", "Memory that there is.", total_of},
    {"det_gpu_temperature_celsius", "Temperature.", temp_of},
    {"det_gpu_power_watts", "Power drawn.", power_of},
    {"det_gpu_sm_clock_mhz", "Clock of the processors.", sm_of},
    {"det_gpu_memory_clock_mhz", "Clock of the memory.", mem_of},
    {"det_gpu_idle_seconds", "For how long a task has it and gives it no work.", idle_of},
};

/* None where no GPU is known: a family without samples is not written. */
static void write_samples(struct shell *sh, const struct family *f, struct buf *out)
{
    struct core_agent_view a;
    struct core_slot_view s;
    struct link_gpu g;
    bool is_begun = false;
    char slot[16];
    for (size_t i = 0; core_agent_at(api_core(sh), i, &a); i++)
        for (size_t k = 0; core_slot_at(api_core(sh), a.id, k, &s); k++) {
            if (!agents_gpu(sh->agents, a.id, s.id, &g) || f->value(&g) < 0)
                continue;
            if (!is_begun)
                prom_family(out, f->name, "gauge", f->help);
            is_begun = true;
            snprintf(slot, sizeof slot, "%d", s.id);
            prom_sample(out, f->name, PROM_LABELS("agent", a.id, "slot", slot), f->value(&g));
        }
}

void gpus_metrics(struct shell *sh, struct buf *out)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(families); i++)
        write_samples(sh, &families[i], out);
}
