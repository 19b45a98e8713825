#include "agent.h"

#include "apart.h"
#include "cgroup.h"
#include "dial.h"
#include "enrol.h"
#include "fsx.h"
#include "gpufigures.h"
#include "gpuwatch.h"
#include "life.h"
#include "log.h"
#include "map.h"
#include "notify.h"
#include "slots.h"
#include "sweeper.h"
#include "taskconn.h"
#include "taskdir.h"
#include "taskserver.h"
#include "tasklimits.h"
#include "taskuids.h"
#include "uuid.h"
#include "watch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN_BYTES_MAX 4096
#define DEAF_MS         3000 /* after a kill: then its det-task is ended from outside */
#define DEAF_TICK_MS    500
#define FIGURES_MS      10000

struct agent {
    uv_loop_t *loop;
    struct taskdirs dirs;
    struct slots slots;
    struct tasklimits limits;
    struct host *host;
    struct client_uv *http;
    struct identity identity;
    struct renewal *renewal; /* of its certificate; NULL: it has none */
    struct dial *dial;
    struct life *life;
    struct map *conns; /* alloc -> struct taskconn * */
    uv_signal_t term, intr, child, hup;
    uv_timer_t patience; /* runs while a kill is unanswered */
    struct sweeper sweeper;
    struct watches *watches;
    struct gpuwatch *gpus; /* NULL: there are none to look at */
    struct gpufigures *figures;
    uint64_t figures_ms; /* when they were told last */
    bool is_performing;
};

static void perform_effects(struct agent *a);

/* ---- det-task ---- */

static void on_running(void *arg, const char *alloc)
{
    struct agent *a = arg;
    host_on_running(a->host, alloc);
    perform_effects(a);
}

static void on_marks(void *arg, const char *alloc, const json_t *marks)
{
    struct agent *a = arg;
    host_on_marks(a->host, alloc, marks);
    perform_effects(a);
}

static void on_silent(void *arg, const char *alloc, const struct link_silent *s)
{
    struct agent *a = arg;
    host_on_silent(a->host, alloc, s);
}

static void on_unreached(void *arg, const char *alloc, const struct link_unreached *u)
{
    struct agent *a = arg;
    if (host_on_unreached(a->host, alloc, u))
        log_with(LOG_WARNING, LOG_FIELDS("allocation", alloc),
                 "the task gets no answer from the master: %s", u->text);
}

static void on_ended(void *arg, const char *alloc, const struct link_exit *e)
{
    struct agent *a = arg;
    log_with(LOG_INFO, LOG_FIELDS("allocation", alloc), "%s%s%s", link_exit_reason_name(e->reason),
             *e->text ? ": " : "", e->text);
    host_on_ended(a->host, alloc, e);
    perform_effects(a);
}

/* The last word of a det-task may be in its state file only. */
static void read_exit(struct agent *a, const char *alloc)
{
    struct link_exit e;
    JSON_OWN j = NULL;
    if (taskdir_exit(&a->dirs, alloc, &j, &e, NULL) < 0)
        return;
    host_on_marks(a->host, alloc, json_object_get(j, "marks"));
    host_on_ended(a->host, alloc, &e);
}

static void on_gone(void *arg, const char *alloc)
{
    struct agent *a = arg;
    map_del(a->conns, alloc);
    read_exit(a, alloc);
    host_on_gone(a->host, alloc);
    perform_effects(a);
}

static int connect_task(struct agent *a, const char *alloc, struct det_err *err)
{
    const struct taskconn_handlers h = {on_running, on_marks, on_silent, on_unreached,
                                        on_ended,   on_gone,  a};
    char path[64];
    int fd;
    int rc = taskdir_socket_path(&a->dirs, alloc, &fd, path, err);
    if (rc == 0)
        map_put(a->conns, alloc, taskconn_open(a->loop, alloc, path, fd, &h));
    return rc;
}

static void start_failed(struct agent *a, const char *alloc, const struct det_err *err)
{
    struct link_exit e = {.reason = LINK_START_FAILED, .rank = -1, .text = err->text};
    log_with(LOG_ERROR, LOG_FIELDS("allocation", alloc), "%s", err->text);
    host_on_ended(a->host, alloc, &e);
    host_on_gone(a->host, alloc);
}

static void start_task(struct agent *a, const struct host_effect *e)
{
    struct det_err err = {0};
    bool recover = e->kind == HOST_RECOVER;
    int rc = recover ? 0 : taskdir_make(&a->dirs, e->alloc, e->container, e->task, &err);
    if (rc == 0)
        rc = taskdir_spawn(&a->dirs, e->alloc, recover, &err);
    if (rc == 0)
        rc = connect_task(a, e->alloc, &err);
    if (rc < 0)
        start_failed(a, e->alloc, &err);
    else
        log_with(LOG_INFO, LOG_FIELDS("allocation", e->alloc), "%s",
                 recover ? "det-task was gone; another takes over" : "started");
}

/* ---- kills that nobody answers ---- */

/* A det-task that is stopped or stuck can end nothing: a successor does what it left. */
static void on_patience(uv_timer_t *timer)
{
    struct agent *a = timer->data;
    const char *alloc;
    void *conn;
    bool waits = false;
    for (size_t it = 0; map_next(a->conns, &it, &alloc, &conn);) {
        uint64_t since = taskconn_killed_ms(conn);
        if (since > 0 && uv_now(a->loop) - since >= DEAF_MS) {
            log_warning("%s: det-task does not answer a kill; it is ended from outside", alloc);
            taskconn_forget_kill(conn);
            taskdir_end(&a->dirs, alloc);
        }
        waits |= taskconn_killed_ms(conn) > 0;
    }
    if (!waits)
        uv_timer_stop(timer);
}

static void send_signal(struct agent *a, struct taskconn *c, int signal)
{
    taskconn_signal(c, signal);
    if (signal == SIGKILL && !uv_is_active((uv_handle_t *)&a->patience))
        uv_timer_start(&a->patience, on_patience, DEAF_TICK_MS, DEAF_TICK_MS);
}

/* ---- effects ---- */

static void perform_one(struct agent *a, const struct host_effect *e)
{
    struct taskconn *c = map_get(a->conns, e->alloc);
    switch (e->kind) {
    case HOST_START:
    case HOST_RECOVER: start_task(a, e); break;
    case HOST_SIGNAL:
        if (c)
            send_signal(a, c, e->signal);
        break;
    case HOST_STACKS:
        if (c)
            taskconn_stacks(c);
        break;
    case HOST_ACKED:
        if (c)
            taskconn_acked(c);
        break;
    case HOST_FORGET:
        taskdir_drop(&a->dirs, e->alloc);
        sweeper_kick(&a->sweeper);
        break;
    case HOST_SETTLE: gpuwatch_settle(a->gpus, e->slot); break;
    case HOST_LOOK: watches_add(a->watches, e->task); break;
    case HOST_UNLOOK: watches_clear(a->watches); break;
    }
}

static void perform_effects(struct agent *a)
{
    struct host_effect e;
    if (a->is_performing)
        return;
    a->is_performing = true;
    while (host_take(a->host, &e)) {
        perform_one(a, &e);
        json_decref(e.task);
    }
    a->is_performing = false;
    if (DET_CHECKS)
        host_check(a->host);
    if (a->dial)
        dial_kick(a->dial);
}

static void on_store(void *arg, const struct link_store *s)
{
    struct agent *a = arg;
    host_on_store(a->host, s);
    perform_effects(a);
}

static bool has_task(void *arg, int slot)
{
    struct agent *a = arg;
    return host_slot_has_task(a->host, slot);
}

static void on_slot(void *arg, int slot, const struct gpu_verdict *v, const struct gpu_sight *s)
{
    struct agent *a = arg;
    host_on_slot(a->host, &(struct link_slot_sight){slot, v->state, v->text});
    if (v->state != LINK_SLOT_UNSEEN)
        gpufigures_add(a->figures, slot, s, has_task(a, slot), uv_now(a->loop));
}

/* With the next event or beat. */
static void tell_figures(struct agent *a)
{
    if (a->figures_ms > 0 && uv_now(a->loop) - a->figures_ms < FIGURES_MS)
        return;
    json_t *all = gpufigures_take(a->figures);
    if (!all)
        return;
    a->figures_ms = uv_now(a->loop);
    host_set_gpus(a->host, all);
}

static void on_looked(void *arg)
{
    struct agent *a = arg;
    tell_figures(a);
    if (a->dial)
        perform_effects(a);
}

static void on_change(void *arg)
{
    perform_effects(arg);
}

/* ---- start ---- */

/* What was begun and never written whole is of no use to anybody. */
static void adopt_one(struct agent *a, const char *alloc)
{
    struct det_err err = {0};
    struct link_spec spec;
    JSON_OWN j = taskdir_spec(&a->dirs, alloc, &err);
    const char *container = json_str(j, "container", NULL);
    if (!j || !link_id_is_valid(container) ||
        link_spec_decode(json_object_get(j, "task"), &spec, &err) < 0) {
        log_with(LOG_WARNING, LOG_FIELDS("allocation", alloc), "dropped: %s", err.text);
        taskdir_drop(&a->dirs, alloc);
        return;
    }
    host_adopt(a->host, alloc, container, spec.slots, spec.slots_n);
    link_spec_finish(&spec);
    read_exit(a, alloc); /* so that the hello does not say that it runs */
    log_with(LOG_INFO, LOG_FIELDS("allocation", alloc), "found");
    if (connect_task(a, alloc, &err) < 0)
        on_gone(a, alloc);
}

static void adopt_all(struct agent *a)
{
    char **names = taskdir_list(&a->dirs);
    for (size_t i = 0; names[i]; i++) {
        adopt_one(a, names[i]);
        free(names[i]);
    }
    free(names);
    sweeper_kick(&a->sweeper);
}

static int read_token(const char *path, struct buf *out, struct det_err *err)
{
    struct stat st;
    int rc = fsx_read_file(AT_FDCWD, path, TOKEN_BYTES_MAX, out, err);
    if (rc < 0)
        return det_wrap(err, rc, "--token-file");
    out->len = strcspn(buf_str(out), " \t\r\n");
    out->p[out->len] = '\0';
    if (out->len == 0)
        return det_fail(err, DET_EINVAL, "--token-file %s is empty", path);
    if (stat(path, &st) == 0 && st.st_mode & 077)
        log_warning("%s can be read by others: chmod 600 it", path);
    return 0;
}

/* Absolute, since tasks look from elsewhere; what is not there yet is passed over by them. */
static void add_hidden(json_t *list, const char *path, size_t n)
{
    det_cleanup(freep) char *given = det_strndup(path, n);
    char real[PATH_MAX];
    if (n > 0 && (realpath(given, real) || *given == '/'))
        json_array_append_new(list, json_string(realpath(given, real) ? real : given));
}

/* What is the agent's own, and what it was told of. */
static json_t *list_hidden(const struct agentopts *o, const char *identity)
{
    const char *home = getenv("HOME");
    json_t *list = json_array();
    if (o->token_file)
        add_hidden(list, o->token_file, strlen(o->token_file));
    add_hidden(list, identity, strlen(identity));
    det_cleanup(freep) char *logins = det_asprintf("%s/.config/determined", home ? home : "");
    add_hidden(list, logins, strlen(logins));
    for (const char *p = o->hide; *p; p += strspn(p, ":")) {
        size_t n = strcspn(p, ":");
        add_hidden(list, p, n);
        p += n;
    }
    return list;
}

/* The "agent" object of every spec.json. */
static json_t *describe_agent(const struct agent *a, const struct agentopts *o)
{
    const struct slots *s = &a->slots;
    const struct tasklimits *l = &a->limits;
    json_t *j = json_object(), *slots = json_array();
    int n = (int)(s->v.n ? s->v.n : 1), threads = slots_cores() / n;
    for (size_t i = 0; i < s->v.n; i++)
        json_array_append_new(slots,
                              json_make("{s:i, s:s, s:s}", "id", s->v.v[i].id, "type",
                                        link_device_name(s->v.v[i].type), "uuid", s->v.v[i].uuid));
    json_set(j, "id", json_string(o->id));
    json_set(j, "addr", json_string(o->addr));
    json_set(j, "master", json_string(o->master));
    if (o->ca_file)
        json_set(j, "ca_file", json_string(o->ca_file));
    if (o->cert_name)
        json_set(j, "cert_name", json_string(o->cert_name));
    if (o->accounts.task_user)
        json_set(j, "task_user", json_string(o->accounts.task_user));
    json_set(j, "task_uids", json_string(o->task_uids));
    json_set(j, "threads_per_slot", json_integer(threads > 0 ? threads : 1));
    json_set(j, "log_mib", json_integer(o->log_mib));
    json_set(j, "slot_memory_mib", json_integer(o->slot_memory_mib));
    json_set(j, "slot_pids", json_integer(o->slot_pids));
    if (l->place)
        json_set(j, "cgroup", json_string(l->place));
    json_set(j, "slots", slots);
    json_set(j, "hide", list_hidden(o, a->identity.path));
    return j;
}

static int make_http(struct agent *a, const struct agentopts *o, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf token = BUF_INIT;
    int rc = a->identity.cert ? 0 : read_token(o->token_file, &token, err);
    if (rc < 0)
        return rc;
    struct client_options c = {.url = o->master,
                               .token_kind = CLIENT_TOKEN_AGENT,
                               .token = token.p,
                               .ca_file = o->ca_file,
                               .cert = a->identity.cert,
                               .key = a->identity.key,
                               .cert_name = o->cert_name};
    return client_uv_create(a->loop, &c, &a->http, err);
}

/* The certificate there is or that the join token gives; without either the shared token counts.
 * own: o, and how the master is known. */
static int open_identity(struct agent *a, const struct agentopts *o, struct agentopts *own,
                         struct det_err *err)
{
    *own = *o;
    int rc = identity_open(o->work_dir, &a->identity, err);
    if (rc == 0)
        rc = enrol(&a->identity, o, err);
    if (rc == 0 && !o->ca_file && access(a->identity.authority_path, R_OK) == 0)
        own->ca_file = a->identity.authority_path;
    if (rc == 0 && !a->identity.cert && !o->token_file)
        rc = det_fail(err, DET_EINVAL,
                      "this agent has no certificate yet: start it once with --join-token and what "
                      "det agent join-token prints; or copy the file that the master wrote with "
                      "--agent-token-file to this host, and name it as --token-file");
    return rc;
}

static void agent_close(struct agent *a)
{
    const char *alloc;
    void *conn;
    for (size_t it = 0; map_next(a->conns, &it, &alloc, &conn);)
        taskconn_close(conn);
    dial_close(a->dial);
    a->dial = NULL;
    renewal_close(a->renewal);
    client_uv_close(a->http);
    uv_close((uv_handle_t *)&a->term, NULL);
    uv_close((uv_handle_t *)&a->intr, NULL);
    uv_close((uv_handle_t *)&a->child, NULL);
    uv_close((uv_handle_t *)&a->hup, NULL);
    uv_close((uv_handle_t *)&a->patience, NULL);
    sweeper_close(&a->sweeper);
    watches_close(a->watches);
    gpuwatch_close(a->gpus);
    a->gpus = NULL;
}

static void on_stop(uv_signal_t *s, int signum)
{
    log_info("ending; the tasks go on");
    notify_manager("STOPPING=1");
    agent_close(s->data);
}

static void on_child(uv_signal_t *s, int signum)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void on_reload(uv_signal_t *s, int signum)
{
    struct agent *a = s->data;
    renewal_now(a->renewal);
}

static void watch_signals(struct agent *a)
{
    signal(SIGPIPE, SIG_IGN);
    uv_signal_init(a->loop, &a->term);
    uv_signal_init(a->loop, &a->intr);
    uv_signal_init(a->loop, &a->child);
    uv_signal_init(a->loop, &a->hup);
    uv_timer_init(a->loop, &a->patience);
    a->patience.data = a;
    a->term.data = a->intr.data = a->child.data = a->hup.data = a;
    uv_signal_start(&a->term, on_stop, SIGTERM);
    uv_signal_start(&a->intr, on_stop, SIGINT);
    uv_signal_start(&a->child, on_child, SIGCHLD);
    uv_signal_start(&a->hup, on_reload, SIGHUP);
}

static void release_agent(struct agent *a)
{
    host_destroy(a->host);
    gpufigures_destroy(a->figures);
    map_destroy(a->conns);
    slots_finish(&a->slots);
    life_close(a->life);
    taskdirs_close(&a->dirs);
    cgroup_remove(a->limits.place); /* while tasks are in it, it stays */
    tasklimits_finish(&a->limits);
    identity_finish(&a->identity);
}

/* Whose tasks are kept from whose, and what each may take: a weaker way than the usual one is
 * said. */
static int check_tasks(const struct agentopts *o, struct tasklimits *ret, struct det_err *err)
{
    struct det_err why = {0};
    char gap[512];
    if (geteuid() == 0 && !o->accounts.task_user) {
        int rc = taskuids_check(&o->accounts, &taskuids_of_host, err);
        if (rc < 0)
            return rc;
    }
    const struct apart a = {geteuid() == 0, o->accounts.task_user, apart_probe(&why), why.text};
    if (*apart_gap(&a, gap, sizeof gap))
        log_warning("%s", gap);
    tasklimits_try(o, a.probe == 0, ret);
    if (*tasklimits_gap(ret, gap, sizeof gap))
        log_warning("%s", gap);
    return tasklimits_check(ret, err);
}

int agent_run(const struct agentopts *given, struct det_err *err)
{
    struct agentopts own = *given;
    const struct agentopts *o = &own;
    struct agent a = {
        .loop = uv_default_loop(), .conns = map_create(), .dirs = {.fd = -1, .server = -1}};
    char boot[UUID_STR_MAX];
    int rc = check_tasks(o, &a.limits, err);
    if (rc == 0)
        rc = slots_find(o->slots, &a.slots, err);
    if (rc == 0)
        rc = open_identity(&a, given, &own, err);
    if (rc == 0)
        rc = make_http(&a, o, err);
    if (rc == 0)
        rc = taskdirs_open(&a.dirs, o->work_dir, true, describe_agent(&a, o), err);
    if (rc == 0)
        rc = life_open(o->work_dir, &a.life, err);
    if (rc < 0) {
        release_agent(&a);
        return rc;
    }
    taskserver_start(&a.dirs);
    uuid_random(boot);
    a.host = host_create(boot, o->pool, o->addr, a.slots.v.v, a.slots.v.n);
    watch_signals(&a);
    sweeper_init(&a.sweeper, a.loop, a.dirs.fd);
    a.watches = watches_create(a.loop, &o->accounts, on_store, &a);
    a.figures = gpufigures_create();
    const struct gpuwatch_handlers gpus = {has_task, on_slot, on_looked, &a};
    a.gpus = gpuwatch_create(a.loop, &a.slots, o->work_dir, &gpus);
    log_info("agent %s at %s: %zu slots, master %s", o->id, o->addr, a.slots.v.n, o->master);
    adopt_all(&a);
    notify_manager("READY=1");
    a.dial = dial_create(a.loop, a.http, a.host, a.life, o->id, on_change, &a);
    a.renewal = renewal_create(a.loop, a.http, &a.identity, o->id);
    perform_effects(&a);
    uv_run(a.loop, UV_RUN_DEFAULT);
    uv_loop_close(a.loop);
    release_agent(&a);
    return 0;
}

int agent_end_tasks(const struct agentopts *o, struct det_err *err)
{
    struct taskdirs d;
    struct stat st;
    if (stat(o->work_dir, &st) < 0)
        return 0; /* no agent ever ran there */
    int rc = taskdirs_open(&d, o->work_dir, false, json_object(), err);
    if (rc == 0)
        rc = taskdirs_end_all(&d, err);
    taskdirs_close(&d);
    det_cleanup(freep) char *groups = cgroup_own_place();
    cgroup_remove(groups);
    return rc;
}
