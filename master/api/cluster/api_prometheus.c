/* How the master is: alive, ready, and in figures. */
#include "api_gpus.h"
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db.h"
#include "driver.h"
#include "http_stats.h"
#include "prom.h"
#include "shell.h"
#include "waits.h"
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

void api_health(struct shell *sh, struct http_req *req)
{
    http_reply(req, 200, "{\"status\":\"ok\"}");
}

void api_readiness(struct shell *sh, struct http_req *req)
{
    const char *why = driver_not_ready(sh->driver);
    if (why)
        http_fail(req, DET_EUNAVAIL, "not ready: %s", why);
    else
        http_reply(req, 200, "{\"status\":\"ready\"}");
}

static void write_states(struct buf *out, const char *name, const size_t *n, int count,
                         const char *(*text)(int state))
{
    for (int i = 0; i < count; i++)
        prom_sample(out, name, PROM_LABELS("state", text(i)), (double)n[i]);
}

static const char *exp_text(int s)
{
    return exp_state_text((enum exp_state)s);
}

static const char *trial_text(int s)
{
    return trial_state_text((enum trial_state)s);
}

static const char *alloc_text(int s)
{
    return alloc_state_text((enum alloc_state)s);
}

static void write_work(const struct core_counts *n, struct buf *out)
{
    int64_t waited_us =
        n->oldest_pending_us == INT64_MAX ? 0 : clk_wall_us() - n->oldest_pending_us;
    prom_family(out, "det_experiments", "gauge", "Experiments that are not finished.");
    write_states(out, "det_experiments", n->experiments, EXP_STATE_COUNT, exp_text);
    prom_family(out, "det_trials", "gauge", "Trials of experiments that are not finished.");
    write_states(out, "det_trials", n->trials, TRIAL_STATE_COUNT, trial_text);
    prom_family(out, "det_allocations", "gauge", "Allocations that have not ended.");
    write_states(out, "det_allocations", n->allocations, ALLOC_STATE_COUNT, alloc_text);
    prom_single(out, "det_queue_length", "gauge", "Allocations that wait for slots.",
                (double)n->allocations[ALLOC_PENDING]);
    prom_single(out, "det_queue_oldest_seconds", "gauge", "How long the oldest of them waits.",
                waited_us > 0 ? (double)waited_us / 1e6 : 0);
}

static void write_hosts(const struct core *core, const struct core_counts *n, struct buf *out)
{
    struct core_pool_view p;
    prom_family(out, "det_agents", "gauge", "Agents, by their link.");
    prom_sample(out, "det_agents", PROM_LABELS("link", "up"), (double)n->agents_connected);
    prom_sample(out, "det_agents", PROM_LABELS("link", "lost"), (double)n->agents_lost);
    prom_family(out, "det_slots", "gauge", "Slots of all agents.");
    prom_sample(out, "det_slots", PROM_LABELS("state", "free"), (double)n->slots_free);
    prom_sample(out, "det_slots", PROM_LABELS("state", "used"), (double)n->slots_used);
    prom_sample(out, "det_slots", PROM_LABELS("state", "disabled"), (double)n->slots_disabled);
    prom_family(out, "det_pool_jobs", "gauge", "Jobs of a resource pool.");
    for (size_t i = 0; core_pool_at(core, i, &p); i++) {
        prom_sample(out, "det_pool_jobs", PROM_LABELS("pool", p.name, "state", "queued"),
                    (double)p.jobs_queued);
        prom_sample(out, "det_pool_jobs", PROM_LABELS("pool", p.name, "state", "scheduled"),
                    (double)p.jobs_scheduled);
    }
}

static void write_events(const struct shell *sh, struct buf *out)
{
    struct driver_stats d;
    driver_stats(sh->driver, &d);
    prom_single(out, "det_events_total", "counter", "Events that the core has applied.",
                (double)d.events);
    prom_single(out, "det_events_waiting", "gauge", "Events that wait for it.", (double)d.queued);
    prom_single(out, "det_container_starts_total", "counter", "Start orders to agents.",
                (double)d.starts);
    prom_single(out, "det_allocation_ends_total", "counter", "Allocations that ended.",
                (double)d.ends);
    prom_hist(out, "det_queue_wait_seconds", "From asking for slots to the order to start.",
              &d.queue_wait);
    prom_single(out, "det_metric_reports_total", "counter", "Metric reports durably taken.",
                (double)sh->counts.metric_reports);
    prom_single(out, "det_log_lines_total", "counter", "Log lines of tasks durably taken.",
                (double)sh->counts.log_lines);
    prom_single(out, "det_retention_rounds_total", "counter",
                "Times that all trials were looked through for old logs and metrics.",
                (double)sh->counts.retention_rounds);
    prom_family(out, "det_retention_rows_total", "counter", "Rows deleted for their age.");
    prom_sample(out, "det_retention_rows_total", PROM_LABELS("of", "logs"),
                (double)sh->counts.retention_logs);
    prom_sample(out, "det_retention_rows_total", PROM_LABELS("of", "metrics"),
                (double)sh->counts.retention_metrics);
}

static void write_database(const struct shell *sh, struct buf *out)
{
    struct db_stats s;
    db_stats(sh->db, &s);
    prom_single(out, "det_db_up", "gauge", "Whether PostgreSQL can be written to.",
                db_is_up(sh->db));
    prom_single(out, "det_leader", "gauge", "Whether this master leads: only a leader serves.", 1);
    prom_single(out, "det_epoch", "gauge", "Which leadership this is.", (double)db_epoch(sh->db));
    prom_single(out, "det_commits_total", "counter", "Transactions that committed.",
                (double)s.commits);
    prom_single(out, "det_commits_failed_total", "counter",
                "Transactions that failed as a whole and were tried piece by piece.",
                (double)s.commits_failed);
    prom_single(out, "det_commit_units_total", "counter", "Pieces of work in transactions.",
                (double)s.units);
    prom_single(out, "det_commit_waiting_bytes", "gauge", "Bytes that wait for a transaction.",
                (double)s.waiting_bytes);
    prom_hist(out, "det_commit_seconds", "From sending a transaction to its answer.", &s.commit);
}

static void write_http(const struct shell *sh, struct buf *out)
{
    const struct http_stats *s = http_stats(sh->http);
    prom_family(out, "det_http_requests_total", "counter", "Requests answered.");
    for (size_t i = 0; i < s->counts.n; i++) {
        const struct http_count *c = &s->counts.v[i];
        char class[64], status[16];
        snprintf(class, sizeof class, "%.*s", c->class_len, c->class);
        snprintf(status, sizeof status, "%d", c->status);
        prom_sample(out, "det_http_requests_total", PROM_LABELS("class", class, "status", status),
                    (double)c->n);
    }
    prom_single(out, "det_http_body_bytes_total", "counter", "Bytes of request bodies.",
                (double)s->bytes_in);
    prom_single(out, "det_http_connections", "gauge", "Open connections.", (double)s->connections);
    prom_single(out, "det_http_requests_open", "gauge", "Requests without an answer yet.",
                (double)http_requests_open(sh->http));
    prom_single(out, "det_http_streams", "gauge", "Open streams: agents' orders, followed logs.",
                (double)http_streams_open(sh->http));
    prom_single(out, "det_http_polls", "gauge", "Long polls of tasks.",
                (double)waits_open(sh->waits));
}

static double resident_bytes(void)
{
    unsigned long long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%llu %llu", &total, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double open_files(void)
{
    double n = -3; /* ".", ".." and the directory itself */
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return 0;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void write_process(struct buf *out)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    prom_single(out, "process_resident_memory_bytes", "gauge", "Memory in use.", resident_bytes());
    prom_single(out, "process_open_fds", "gauge", "Open file descriptors.", open_files());
    prom_single(out, "process_cpu_seconds_total", "counter", "Processor time used.",
                (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
}

void api_prometheus(struct shell *sh, struct http_req *req)
{
    struct buf out = BUF_INIT;
    struct core_counts n;
    core_count(api_core(sh), &n);
    write_work(&n, &out);
    write_hosts(api_core(sh), &n, &out);
    gpus_metrics(sh, &out);
    write_events(sh, &out);
    write_database(sh, &out);
    write_http(sh, &out);
    write_process(&out);
    http_reply_with(req, &(struct http_answer){.content_type = PROM_CONTENT_TYPE}, buf_str(&out),
                    out.len);
    buf_finish(&out);
}
