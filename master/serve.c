/* A master's life: its parts, made in order and ended in order. */
#include "serve.h"

#include "agents.h"
#include "agents_join.h"
#include "api.h"
#include "auth.h"
#include "blocks.h"
#include "db.h"
#include "db_cluster.h"
#include "driver.h"
#include "gc.h"
#include "hooks.h"
#include "hub.h"
#include "http.h"
#include "guard.h"
#include "joins.h"
#include "lives.h"
#include "log.h"
#include "logpolicy.h"
#include "mem.h"
#include "notify.h"
#include "origins.h"
#include "page.h"
#include "purge.h"
#include "retention.h"
#include "silence.h"
#include "shell.h"
#include "slow.h"
#include "startup.h"
#include "transport.h"
#include "trim.h"
#include "waits.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { WARN_MS = 3600000, LARGE_WAITING_MAX = 100 };

struct master {
    struct shell sh;
    const struct masterconf *conf;
    uv_loop_t loop;
    uv_signal_t term, intr;
    uv_timer_t warn;  /* again and again, where the transport is insecure */
    uv_timer_t renew; /* looks for a new certificate, where it is not */
    char url[300];
    struct transport transport;
    bool leads, stopping;
    bool is_behind; /* standing by: a rotated authority could not be followed yet */
    int status;
};

static void on_db_closed(void *arg)
{
    struct master *m = arg;
    m->sh.db = NULL;
    waits_destroy(m->sh.waits);
    gc_destroy(m->sh.gc);
    agents_destroy(m->sh.agents);
    hub_destroy(m->sh.hub);
    logpolicies_destroy(m->sh.policies);
    origins_destroy(m->sh.origins);
    auth_destroy(m->sh.auth);
    slow_destroy(m->sh.large);
    m->sh.large = NULL;
    guard_destroy(m->sh.stacks);
    trim_destroy(m->sh.trim);
    m->sh.trim = NULL;
    joins_destroy(m->sh.joins);
    lives_destroy(m->sh.lives);
}

static void on_large_done(void *arg)
{
    struct master *m = arg;
    db_close(m->sh.db, on_db_closed, m);
    driver_destroy(m->sh.driver);
}

static void on_passwords_done(void *arg)
{
    struct master *m = arg;
    slow_drain(m->sh.large, on_large_done, m);
}

static void on_http_closed(void *arg)
{
    struct master *m = arg;
    m->sh.http = NULL;
    auth_drain(m->sh.auth, on_passwords_done, m);
}

/* In this order: nobody new comes in, who waits is answered, what is in hand ends (also in
 * threads, which the database and all else must outlive), then the database. */
static void stop_master(struct master *m)
{
    if (m->stopping)
        return;
    m->stopping = true;
    log_info("stopping");
    notify_manager("STOPPING=1");
    uv_close((uv_handle_t *)&m->term, NULL);
    uv_close((uv_handle_t *)&m->intr, NULL);
    uv_close((uv_handle_t *)&m->warn, NULL);
    uv_close((uv_handle_t *)&m->renew, NULL);
    transport_stop(&m->transport);
    gc_stop(m->sh.gc);
    silence_destroy(m->sh.silence);
    hooks_destroy(m->sh.hooks);
    m->sh.hooks = NULL; /* logs may still come */
    retention_destroy(m->sh.retention);
    blocks_destroy(m->sh.blocks);
    purge_destroy(m->sh.purge);
    m->sh.purge = NULL;
    driver_stop(m->sh.driver);
    agents_stop(m->sh.agents);
    waits_stop(m->sh.waits);
    http_close(m->sh.http, on_http_closed, m);
}

static void on_signal(uv_signal_t *s, int number)
{
    struct master *m = s->data;
    if (!m->leads) {
        log_info("ended");
        exit(0); /* a standby has nothing in hand */
    }
    stop_master(m);
}

static void on_db_state(void *arg, bool up)
{
    struct master *m = arg;
    log_at(up ? LOG_INFO : LOG_WARNING, "PostgreSQL is %s", up ? "back" : "away");
    driver_on_db(m->sh.driver, up);
}

/* Whoever leads now owns the agents and the rows: nothing may be said or written any more. */
static void on_deposed(void *arg)
{
    log_error("another master leads now: this one ends");
    exit(3);
}

static void on_fatal(void *arg)
{
    struct master *m = arg;
    m->status = 1;
    stop_master(m);
}

static void on_standby(void *arg, const char *leader_url)
{
    struct master *m = arg;
    log_info("another master leads at %s: standing by", leader_url);
    http_stand_by(m->sh.http, leader_url);
    notify_manager("READY=1\nSTATUS=standing by");
}

/* Also whoever asks a standby has to find the authority that the leader shows. */
static int on_authority(void *arg)
{
    struct master *m = arg;
    struct det_err err;
    int rc = transport_follow(&m->transport, m->sh.http, &err);
    if (rc < 0 && !m->is_behind)
        log_error("the cluster's authority was rotated, and this master still shows the one of "
                  "before, but tries again: %s",
                  err.text);
    m->is_behind = rc < 0;
    return rc;
}

static int parts_create(struct master *m, struct core_effects *owed, struct det_err *err)
{
    struct db_cluster secrets;
    struct core *core = NULL;
    int rc = startup_identity(&m->sh, &secrets, err);
    if (rc == 0)
        rc = startup_lives(&m->sh, err);
    if (rc == 0)
        rc = joins_open(&m->sh, &m->sh.joins, err);
    if (rc == 0)
        rc = startup_restore(&m->sh, &core, owed, err);
    if (rc < 0)
        return rc;
    m->sh.auth = auth_create(&m->sh, &secrets);
    m->sh.hub = hub_create();
    m->sh.trim = trim_create(m->sh.loop);
    m->sh.stacks = guard_create();
    m->sh.large = slow_create(m->sh.loop, slow_threads(), LARGE_WAITING_MAX);
    m->sh.policies = logpolicies_create();
    m->sh.origins = origins_create();
    m->sh.waits = waits_create(&m->sh);
    m->sh.agents = agents_create(&m->sh);
    m->sh.driver = driver_create(&m->sh, core, on_fatal, m);
    return 0;
}

/* The names of this host that browsers may use for it. */
static char *browsers_hosts(const struct masterconf *conf)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    return det_asprintf("%s %s %s", name, conf->host, conf->web_hosts);
}

static int listen_on(struct master *m, struct det_err *err)
{
    struct pem_pair tls = {BUF_INIT, BUF_INIT};
    char *hosts det_cleanup(freep) = browsers_hosts(m->conf);
    struct http_options o = {.host = m->conf->host,
                             .port = (uint16_t)m->conf->port,
                             .tls = &tls,
                             .sh = &m->sh,
                             .web_hosts = hosts};
    int rc = transport_open(m->conf, &m->transport, &tls, err);
    m->sh.transport = &m->transport;
    o.client_authority = m->transport.ca.cert.p;
    if (rc == 0)
        rc = http_create(&m->loop, &o, &m->sh.http, err);
    pem_pair_finish(&tls);
    if (rc == 0)
        rc = http_add_routes(m->sh.http, agents_routes, agents_routes_n, err);
    if (rc == 0)
        rc = http_add_routes(m->sh.http, agents_join_routes, agents_join_routes_n, err);
    if (rc == 0)
        rc = http_add_routes(m->sh.http, api_routes, api_routes_n, err);
    if (rc < 0)
        return rc;
    http_add_rest(m->sh.http, page_covers, &page_route);
    startup_url(&m->sh, m->url, sizeof m->url);
    http_stand_by(m->sh.http, "not known yet");
    return 0;
}

/* Returns when this master leads; a standby answers its requests meanwhile. */
static int take_lead(struct master *m, struct det_err *err)
{
    struct db_options o = {.conninfo = m->conf->db,
                           .always_anew = !m->conf->reuse_answers,
                           .url = m->url,
                           .on_state = on_db_state,
                           .on_deposed = on_deposed,
                           .on_authority = on_authority,
                           .arg = m};
    int rc = db_create(&m->loop, &o, on_standby, &m->sh.db, err);
    m->leads = rc == 0;
    return rc == 0 ? transport_follow(&m->transport, m->sh.http, err) : rc;
}

static void watch_signals(struct master *m)
{
    signal(SIGPIPE, SIG_IGN);
    uv_signal_init(&m->loop, &m->term);
    uv_signal_init(&m->loop, &m->intr);
    m->term.data = m->intr.data = m;
    uv_signal_start(&m->term, on_signal, SIGTERM);
    uv_signal_start(&m->intr, on_signal, SIGINT);
}

static void on_warn(uv_timer_t *t)
{
    struct master *m = t->data;
    transport_warn(m->conf);
}

static void on_renew(uv_timer_t *t)
{
    struct master *m = t->data;
    transport_renew(&m->transport, m->sh.http, &m->loop);
}

static void start_timers(struct master *m)
{
    uv_timer_init(&m->loop, &m->warn);
    uv_timer_init(&m->loop, &m->renew);
    m->warn.data = m->renew.data = m;
    if (masterconf_is_tls(m->conf))
        uv_timer_start(&m->renew, on_renew, 0, TRANSPORT_LOOK_MS);
    if (transport_is_insecure(m->conf))
        uv_timer_start(&m->warn, on_warn, 0, WARN_MS);
}

static int run_master(struct master *m, struct det_err *err)
{
    struct core_effects owed = CORE_EFFECTS_INIT;
    uv_loop_init(&m->loop);
    m->sh.loop = &m->loop;
    m->sh.conf = m->conf;
    int rc = db_migrate(m->conf->db, err);
    if (rc == 0)
        rc = listen_on(m, err);
    if (rc == 0) {
        watch_signals(m);
        start_timers(m);
        rc = take_lead(m, err);
    }
    if (rc == 0)
        rc = parts_create(m, &owed, err);
    if (rc == 0)
        rc = db_start(m->sh.db, err);
    if (rc < 0)
        return rc; /* the process ends: the system takes back what was made */
    http_stand_by(m->sh.http, NULL);
    m->sh.purge = purge_create(&m->sh);
    driver_start(m->sh.driver, &owed);
    m->sh.gc = gc_create(&m->sh);
    m->sh.retention = retention_create(&m->sh);
    m->sh.blocks = blocks_create(&m->sh);
    m->sh.silence = silence_create(&m->sh);
    m->sh.hooks = hooks_create(&m->sh);
    rc = startup_announce(&m->sh, err);
    if (rc < 0)
        return rc;
    uv_run(&m->loop, UV_RUN_DEFAULT);
    uv_loop_close(&m->loop);
    transport_finish(&m->transport);
    return 0;
}

int serve(const struct masterconf *conf, struct logring *ring, struct det_err *err)
{
    static struct master m;
    m.conf = conf;
    m.sh.logring = ring;
    int rc = run_master(&m, err);
    return rc < 0 ? rc : m.status;
}
