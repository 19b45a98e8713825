/* What the seed makes the cluster of: hosts in pools, how those are run, quotas. */
#include "sim.h"

#include <stdio.h>

static const char *const pool_names[] = {"", "red", "blue"};

const char *setup_pool(struct sim *m)
{
    return pool_names[sim_random(m, (uint64_t)m->pools_n)];
}

void setup_hosts(struct sim *m)
{
    static const int sizes[] = {1, 2, 2, 4, 4, 4, 2, 1};
    m->hosts_n = m->in.agents ? m->in.agents : 2 + (int)sim_random(m, 10);
    m->hosts = det_zalloc((size_t)m->hosts_n * sizeof *m->hosts);
    m->pools_n = m->hosts_n > 3 ? 1 + (int)sim_random(m, DET_ARRAY_LEN(pool_names)) : 1;
    for (int i = 0; i < m->hosts_n; i++) {
        struct sim_host *h = &m->hosts[i];
        h->index = i;
        snprintf(h->id, sizeof h->id, "agent-%d", i);
        h->pool = pool_names[i % m->pools_n];
        h->slots = m->in.slots ? m->in.slots : sizes[sim_random(m, DET_ARRAY_LEN(sizes))];
        h->alive = h->mounted = true;
        h->looks = sim_random(m, 5) > 0; /* the others are of an older version */
        h->judges = i % 4 != 3;
        h->wiring = (enum sim_wiring)((m->in.seed + (uint64_t)i) % WIRES_COUNT);
        hosts_begin(m, i, (int64_t)sim_random(m, 1000));
    }
}

/* One of the pools is run in a way of its own, the other as pools are in general. */
static void setup_pools(struct sim *m)
{
    m->red = (struct core_pool_options){.name = pool_names[1],
                                        .scheduler = (enum core_scheduler)sim_random(m, 4),
                                        .fitting = (enum core_fitting)sim_random(m, 2),
                                        .preemption = sim_random(m, 2),
                                        .default_priority = 42,
                                        .allow_heterogeneous_fits = sim_random(m, 2),
                                        .max_aux_containers = m->o.max_aux_containers,
                                        .agent_reconnect_wait_ms = LEASE_MS,
                                        .starvation_wait_ms = m->o.starvation_wait_ms};
    m->o.pools = &m->red;
    m->o.pools_n = m->pools_n > 1;
}

static void setup_quotas(struct sim *m)
{
    m->quotas[0] = (struct core_quota){"*", NULL, 3 + (int64_t)sim_random(m, 12)};
    m->quotas[1] = (struct core_quota){"user-1", sim_random(m, 2) ? pool_names[1] : NULL,
                                       2 + (int64_t)sim_random(m, 8)};
    m->o.quotas = m->quotas;
    m->o.quotas_n = sim_random(m, 3) ? 0 : 1 + sim_random(m, DET_ARRAY_LEN(m->quotas));
}

void setup_options(struct sim *m)
{
    static const char *const names[] = {"fair share", "priority", "fifo", "round robin"};
    m->o = core_options_default;
    m->o.scheduler = (enum core_scheduler)sim_random(m, 4);
    m->o.preemption = sim_random(m, 2);
    m->o.fitting = (enum core_fitting)sim_random(m, 2);
    m->o.allow_heterogeneous_fits = sim_random(m, 2);
    m->o.preempt_timeout_ms = 60000;
    m->o.agent_reconnect_wait_ms = LEASE_MS;
    m->o.starvation_wait_ms = sim_random(m, 2) ? 0 : 30000 + (int64_t)sim_random(m, 300000);
    setup_pools(m);
    setup_quotas(m);
    sim_trace(m,
              "options   %s, %s fit, %spreemption, %sheterogeneous gangs, guard %lld s, %d pools, "
              "%zu quotas",
              names[m->o.scheduler], m->o.fitting == CORE_FIT_BEST ? "best" : "worst",
              m->o.preemption ? "" : "no ", m->o.allow_heterogeneous_fits ? "" : "no ",
              (long long)(m->o.starvation_wait_ms / 1000), m->pools_n, m->o.quotas_n);
}
