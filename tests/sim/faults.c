/* What goes wrong. */
#include "sim.h"

/* Shorter or longer than the lease; one way or both. */
static void cut_off(struct sim *m, int i)
{
    int64_t until = m->now_ms + 1000 + (int64_t)sim_random(m, sim_random(m, 2) ? 20000 : 200000);
    uint64_t ways = sim_random(m, 3);
    m->got.faults++;
    if (ways != 1)
        m->hosts[i].up_cut = until;
    if (ways != 2)
        m->hosts[i].down_cut = until;
    sim_trace(m, "network   %s is cut off (%s) until %.3f s", m->hosts[i].id,
              ways == 0   ? "both ways"
              : ways == 1 ? "from the master"
                          : "to the master",
              (double)until / 1000);
    hosts_break(m, i);
}

/* Everybody at once: a switch, or the master's own host. */
static void cut_off_all(struct sim *m)
{
    for (int i = 0; i < m->hosts_n; i++)
        if (sim_random(m, 4))
            cut_off(m, i);
}

static void store_away(struct sim *m)
{
    m->got.faults++;
    m->store.down_from = m->now_ms;
    m->store.down_until = m->now_ms + (int64_t)sim_random(m, 60000);
    sim_trace(m, "store     is away until %.3f s", (double)m->store.down_until / 1000);
}

static void store_slow(struct sim *m)
{
    m->got.faults++;
    m->store.slow_until = m->now_ms + (int64_t)sim_random(m, 30000);
    sim_trace(m, "store     is slow until %.3f s", (double)m->store.slow_until / 1000);
}

static void store_hangs(struct sim *m)
{
    m->got.faults++;
    m->store.hung_from = m->now_ms;
    m->store.hung_until = m->now_ms + (int64_t)sim_random(m, sim_random(m, 2) ? 4000 : 60000);
    sim_trace(m, "store     hangs until %.3f s", (double)m->store.hung_until / 1000);
}

/* Disk, user, compiler: what runs goes on, nothing starts. */
static void host_breaks(struct sim *m, int i)
{
    m->got.faults++;
    m->hosts[i].broken_until = m->now_ms + (int64_t)sim_random(m, sim_random(m, 4) ? 5000 : 900000);
    sim_trace(m, "host      %s starts nothing until %.3f s", m->hosts[i].id,
              (double)m->hosts[i].broken_until / 1000);
}

/* Shorter or longer than what is waited for before the host is left out. */
static void host_deafens(struct sim *m, int i)
{
    m->got.faults++;
    int64_t until = m->now_ms + (int64_t)sim_random(m, sim_random(m, 2) ? 60000 : 900000);
    sim_trace(m, "host      %s lets no task's packets out until %.3f s", m->hosts[i].id,
              (double)until / 1000);
    hosts_deafen(m, i, until);
}

/* On a host, or the file server's own end; only of a store that is known by its marker. */
static void unmount(struct sim *m, int host)
{
    bool all = sim_random(m, 3) == 0;
    m->got.faults++;
    for (int i = 0; m->marker[0] && i < m->hosts_n; i++)
        if ((all || i == host) && m->hosts[i].looks)
            hosts_mount(m, i, false);
}

static void slot_ails(struct sim *m, int host)
{
    m->got.faults++;
    hosts_ail(m, host, (int)sim_random(m, (uint64_t)m->hosts[host].slots), false);
}

/* One of its det-tasks, whatever that is at. */
static void task_dies(struct sim *m, int host)
{
    size_t n = m->hosts[host].tasks.n;
    m->got.faults++;
    if (n)
        life_die(m, m->hosts[host].tasks.v[sim_random(m, n)]);
}

void fault_strike(struct sim *m)
{
    int host = (int)sim_random(m, (uint64_t)m->hosts_n);
    struct sim_master *s = sim_master_leader(m);
    uint64_t dice = sim_random(m, 31);
    if (dice < 5) {
        hosts_break(m, host);
    } else if (dice < 8) {
        hosts_die(m, host);
    } else if (dice < 11) {
        cut_off(m, host);
    } else if (dice < 12) {
        cut_off_all(m);
    } else if (dice < 14) {
        store_slow(m);
    } else if (dice < 15) {
        store_away(m);
    } else if (dice < 17 && sim_master_serves(m, s)) {
        sim_master_freeze(m, s, 500 + (int64_t)sim_random(m, sim_random(m, 2) ? 5000 : 40000));
    } else if (dice < 18 && sim_master_serves(m, s) && sim_random(m, 2)) {
        sim_master_stop(m, s);
    } else if (dice < 18 && s->core) {
        sim_master_crash(m, s);
    } else if (dice == 18 || dice == 29) {
        hosts_restart(m, host);
    } else if (dice == 30) {
        host_deafens(m, host);
    } else if (dice >= 27) {
        task_dies(m, host);
    } else if (dice == 19) {
        host_breaks(m, host);
    } else if (dice >= 25) {
        slot_ails(m, host);
    } else if (dice >= 22) {
        unmount(m, host);
    } else if (dice >= 20) {
        store_hangs(m);
    }
}
