/* From an empty directory to running ranks. */
#include "task.h"

#include "clk.h"
#include "datapaths.h"
#include "deaths.h"
#include "find.h"
#include "fsx.h"
#include "gcrun.h"
#include "log.h"
#include "oom.h"
#include "owncache.h"
#include "taskenv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define RETRY_FIRST_MS 50
#define RETRY_MAX_MS   2000
#define ARRIVE_MS      30
#define DATA_LOOK_MS   1000
#define RENDEZVOUS_MS  ((int64_t)24 * 3600 * 1000)

void task_fail_start(struct task *t, const struct det_err *err)
{
    task_fails(t, TASKLIFE_FAILED, (struct link_exit){.reason = LINK_START_FAILED, .rank = -1},
               "%s", err->text);
}

void task_fail_absent(struct task *t, const struct det_err *err)
{
    task_fails(t, TASKLIFE_FAILED, (struct link_exit){.reason = LINK_ABSENT, .rank = -1}, "%s",
               err->text);
}

void task_fail_trial(struct task *t, int code, const struct det_err *err)
{
    task_fails(t, TASKLIFE_FAILED,
               (struct link_exit){.reason = LINK_EXITED, .code = code, .rank = -1}, "%s",
               err->text);
}

/* ---- processes ---- */

void task_say_no_box(struct task *t, const struct det_err *err)
{
    log_warning("no namespaces for this task: %s", err->text);
    logspool_say(t->spool, LOGLINE_WARNING,
                 "This task has no namespaces of its own: other tasks' processes and temporary "
                 "files can be seen from it, and its own from others. %s.",
                 err->text);
}

int task_peek(struct task *t, tasklook_fn *fn, void *arg, struct buf *ret, struct det_err *err)
{
    if (taskbox_finish(&t->box, err) < 0)
        task_say_no_box(t, err);
    return tasklook(&t->spec, &t->box, fn, arg, ret, err);
}

struct data_look {
    const json_t *paths;
    const char *who;
};

struct search {
    const json_t *env;
    const char *name;
};

static void search_path(void *arg, struct buf *out)
{
    const struct search *s = arg;
    det_cleanup(freep) char *file = find_on_path(json_str(s->env, "PATH", NULL), s->name);
    buf_add_str(out, file ? file : "");
}

int task_find(struct task *t, const json_t *env, const char *name, char **ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf found = BUF_INIT;
    *ret = NULL;
    int rc = task_peek(t, search_path, &(struct search){env, name}, &found, err);
    if (rc == 0 && found.len > 0)
        *ret = det_strdup(buf_str(&found));
    return rc;
}

struct rank *task_start_process(struct task *t, struct rank_options *o, const json_t *env,
                                struct det_err *err)
{
    struct rank *r = NULL;
    det_cleanup(freep) char *file = NULL;
    if (task_find(t, env, o->argv[0], &file, err) < 0)
        return NULL;
    if (!file) {
        det_fail(err, DET_ENOENT, "%s: command not found", o->argv[0]);
        return NULL;
    }
    char **vector = taskenv_vector(env);
    o->spec = &t->spec;
    o->file = file;
    o->env = vector;
    o->cgroup = t->cgroup;
    o->box = &t->box;
    o->loop = t->loop;
    o->on_line = task_on_line;
    o->on_silent = task_on_silent;
    o->arg = t;
    if (rank_start(o, &r, err) < 0)
        r = NULL;
    taskenv_vector_destroy(vector);
    return r;
}

static bool start_rank(struct task *t, int local, struct det_err *err)
{
    JSON_OWN env = json_copy(t->env);
    struct rank_options o = {
        .argv = t->plan.argv, .number = RANK_NO_RANK, .local = local, .pass_fd = -1};
    taskenv_add_files(env, &t->spec, local);
    if (t->plan.per_slot) {
        taskenv_add_rank(env, &t->spec, local);
        o.number = taskspec_first_rank(&t->spec) + local;
    }
    struct rank *r = task_start_process(t, &o, env, err);
    if (!r)
        return false;
    vec_push(&t->ranks, r);
    deaths_add(t->deaths, rank_pid(r));
    return true;
}

/* local -1: none is silent any more. The batches are the rank's word: kept within what may be told.
 */
static void tell_silence(struct task *t, const struct stall_found *s)
{
    t->silent =
        (struct link_silent){.phase = s->local < 0 ? NULL : s->phase,
                             .rank = taskspec_first_rank(&t->spec) + s->local,
                             .batches = s->batches < INT32_MAX ? (int64_t)s->batches : INT32_MAX,
                             .silent_ms = s->silent_ms,
                             .timeout_ms = t->spec.task.stall_timeout_ms};
    task_tell_running(t);
}

static void on_watch(uv_timer_t *timer)
{
    struct task *t = timer->data;
    struct stall_found found;
    if (t->life.phase != TASK_RUNNING || t->tracer)
        return;
    if (stall_check(t->stall, clk_mono_ms(), &found))
        task_on_stall(t, &found);
    else if (stall_news(t->stall, &found))
        tell_silence(t, &found);
}

static void watch_ranks(struct task *t)
{
    if (t->spec.task.stall_timeout_ms <= 0)
        return;
    t->stall = stall_create(&t->spec, (int)t->ranks.n, t->plan.is_harness, clk_mono_ms());
    uv_timer_start(&t->watch, on_watch, stall_period_ms(t->stall), stall_period_ms(t->stall));
}

static void look_at_data(void *arg, struct buf *out)
{
    const struct data_look *l = arg;
    datapaths_tell(l->paths, l->who, out);
}

/* Before the code looks for its data where they are, and is told that nothing is there. */
static void tell_closed_data(struct task *t)
{
    struct det_err err = {0};
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    JSON_OWN paths = t->spec.task.gc_uuids ? NULL : datapaths_of(t->spec.task.env);
    if (json_array_size(paths) == 0)
        return;
    det_cleanup(freep) char *who =
        det_asprintf("the account %s (uid %u)", t->spec.user_name, (unsigned)t->spec.uid);
    struct data_look l = {paths, who};
    if (taskbox_finish(&t->box, &err) < 0)
        task_say_no_box(t, &err);
    struct tasklook_limit limit = {.ms = DATA_LOOK_MS};
    int rc = tasklook_within(&t->spec, &t->box, &limit, look_at_data, &l, &said, &err);
    t->looker = limit.late;
    if (rc == DET_ETIMEOUT)
        logspool_say(t->spool, LOGLINE_WARNING,
                     "Paths in the configuration gave no answer within %d s: does a mount of this "
                     "host hang? Which of them the task's account may read was not looked at.",
                     DATA_LOOK_MS / 1000);
    else if (rc < 0)
        log_warning("the data of the configuration cannot be looked at: %s", err.text);
    char *rest = said.len ? (char *)buf_str(&said) : NULL, *line;
    while (rest && *(line = strsep(&rest, "\n")))
        logspool_say(t->spool, LOGLINE_WARNING, "%s", line);
}

void task_start_ranks(struct task *t)
{
    struct det_err err = {0};
    tell_closed_data(t);
    if (prepare_plan(&t->spec, t->env, t->python, &t->plan, &err) < 0) {
        task_fail_trial(t, 127, &err);
        return;
    }
    task_happens(t, TASKLIFE_RANKS);
    if (t->life.phase != TASK_RUNNING)
        return;
    marks_add(&t->marks, "prepared", t->life.since_ms - t->begun_ms, "%s", "");
    marks_ranks(&t->marks, &t->spec);
    int n = t->plan.per_slot ? taskspec_local_size(&t->spec) : 1;
    for (int i = 0; i < n; i++)
        if (!start_rank(t, i, &err)) {
            task_fail_trial(t, err.code == DET_ENOENT ? 127 : 126, &err);
            return;
        }
    watch_ranks(t);
}

/* ---- the master's part: context, rendezvous ---- */

static bool may_retry(int rc)
{
    return rc == DET_EUNAVAIL || rc == DET_ETIMEOUT || rc == DET_EIO;
}

static void retry_later(struct task *t, void (*again)(uv_timer_t *timer))
{
    t->retry_ms = t->retry_ms ? t->retry_ms * 2 : RETRY_FIRST_MS;
    t->retry_ms = t->retry_ms > RETRY_MAX_MS ? RETRY_MAX_MS : t->retry_ms;
    uv_timer_start(&t->ask, again, t->retry_ms, 0);
}

/* Where the chief is, before anybody is told of them. */
static void take_ports(struct task *t)
{
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    if (t->spec.task.node != 0)
        return;
    ports_take(&t->ports, t->spec.task.env, &said);
    if (said.len)
        logspool_say(t->spool, LOGLINE_INFO, "Ports that are taken on this host are exchanged: %s.",
                     buf_str(&said));
}

/* All is known: the info files, then the steps before the ranks, or these. */
static void start_steps(struct task *t, const struct taskenv_nodes *n)
{
    struct det_err err = {0};
    const char *chief = json_string_value(json_array_get(n->addrs, 0));
    t->env = taskenv_common(&t->spec, chief ? chief : t->spec.addr);
    ports_name(&t->ports.other, t->env);
    int rc = taskenv_write_info(&t->spec, t->env, n, &err);
    taskenv_leave_out_long(t->env);
    if (rc == 0 && t->spec.task.gc_uuids)
        rc = gcrun_write(&t->spec, &err);
    if (rc < 0)
        task_fail_start(t, &err);
    else if (t->spec.task.gc_uuids)
        task_start_ranks(t);
    else
        task_start_steps(t);
}

static void ask_rendezvous(struct task *t);

static void on_rendezvous_timer(uv_timer_t *timer)
{
    struct task *t = timer->data;
    if (t->life.phase > TASK_RUNNING)
        return;
    task_connect(t);
    ask_rendezvous(t);
}

/* The answer is for all hosts, that of rank 0 too: an older master has told the others nothing. */
static int hear_ports(struct task *t, const json_t *info, struct det_err *err)
{
    const struct runports chosen = t->ports.other;
    if (t->spec.task.nodes == 1)
        return 0;
    int rc = runports_read(&t->ports.other, json_str(info, "ports", NULL), err);
    if (rc == 0 && t->spec.task.node == 0 && memcmp(&chosen, &t->ports.other, sizeof chosen) != 0)
        logspool_say(t->spool, LOGLINE_WARNING,
                     "Ports stay as they were given: this master is too old to tell the other "
                     "hosts of new ones.");
    return rc;
}

static void on_rendezvous(void *arg, int rc, const struct client_resp *resp,
                          const struct det_err *e)
{
    struct task *t = arg;
    struct det_err err = *e;
    t->call = NULL;
    if (t->life.phase > TASK_RUNNING)
        return;
    JSON_OWN j = rc == 0 ? json_parse(buf_str(&resp->body), resp->body.len, &err) : NULL;
    const json_t *info = json_obj(j, "rendezvousInfo");
    struct taskenv_nodes n = {json_arr(info, "addresses"), (int)json_int(info, "rank", 0),
                              json_arr(info, "slots")};
    if (rc < 0 && may_retry(rc)) {
        retry_later(t, on_rendezvous_timer);
        return;
    }
    rc = rc < 0 ? rc : hear_ports(t, info, &err);
    if (rc < 0 || !n.addrs || !n.slots || json_array_size(n.addrs) != (size_t)t->spec.task.nodes) {
        if (rc == 0)
            det_fail(&err, DET_ECORRUPT, "an answer without %d addresses", t->spec.task.nodes);
        det_wrap(&err, DET_EIO, "rendezvous");
        task_fail_start(t, &err);
    } else {
        task_happens(t, TASKLIFE_MET);
        if (t->spec.task.nodes > 1)
            start_steps(t, &n);
    }
}

static void ask_rendezvous(struct task *t)
{
    det_cleanup(buf_finish) struct buf path = BUF_INIT, ports = BUF_INIT;
    buf_addf(&path, "/api/v1/allocations/%s/resources/%s/rendezvous", t->spec.alloc,
             t->spec.container);
    if (t->spec.task.node == 0)
        runports_write(&ports, &t->ports.other);
    if (ports.len)
        buf_addf(&path, "?ports=%s", buf_str(&ports));
    struct client_req req = {.method = "GET", .path = buf_str(&path), .timeout_ms = RENDEZVOUS_MS};
    t->call = client_uv_start(t->http, &req, on_rendezvous, t);
}

/* With one node there is nothing to wait for: its ranks start, and the master is told a moment
 * later, unless all is over by then. It may answer that this run is not wanted any more. */
static void with_context(struct task *t)
{
    t->retry_ms = 0;
    take_ports(t);
    if (t->spec.task.nodes > 1) {
        task_connect(t);
        ask_rendezvous(t);
        return;
    }
    JSON_OWN addrs = json_array();
    JSON_OWN slots = json_array();
    json_array_append_new(addrs, json_string(t->spec.addr));
    json_array_append_new(slots, json_integer(t->spec.task.slot_counts[0]));
    start_steps(t, &(struct taskenv_nodes){addrs, 0, slots});
    if (t->life.phase <= TASK_RUNNING && !t->spec.task.gc_uuids)
        uv_timer_start(&t->ask, on_rendezvous_timer, ARRIVE_MS, 0);
}

static void ask_context(struct task *t);

static void on_context_timer(uv_timer_t *timer)
{
    ask_context(timer->data);
}

static void on_context(void *arg, int rc, const struct client_resp *resp, const struct det_err *e)
{
    struct task *t = arg;
    struct det_err err = *e;
    t->call = NULL;
    if (t->life.phase != TASK_PREPARING)
        return;
    if (rc < 0 && may_retry(rc)) {
        retry_later(t, on_context_timer);
        return;
    }
    JSON_OWN j = rc == 0 ? json_parse(buf_str(&resp->body), resp->body.len, &err) : NULL;
    const char *b64 = json_str(j, "b64Tgz", json_str(j, "b64_tgz", NULL));
    if (rc == 0 && !b64)
        rc = det_fail(&err, DET_ECORRUPT, "the model definition: an answer without b64Tgz");
    if (rc == 0)
        rc = prepare_context(&t->spec, b64, strlen(b64), &err);
    if (rc < 0)
        task_fail_start(t, &err);
    else
        with_context(t);
}

static void ask_context(struct task *t)
{
    det_cleanup(freep) char *path =
        det_asprintf("/api/v1/tasks/%s/context_directory", t->spec.task.task_id);
    t->call = client_uv_start(t->http, &(struct client_req){.method = "GET", .path = path},
                              on_context, t);
}

/* The ranks speak to the master themselves: a certificate that their account cannot read would
 * leave them training without a word. */
static int check_certificate(const struct task *t, struct det_err *err)
{
    const char *ca = t->spec.ca_file;
    if (!ca || strcmp(ca, "noverify") == 0)
        return 0;
    if (taskspec_user_enter(&t->spec, err) < 0)
        return DET_EPERM;
    int fd = open(ca, O_RDONLY | O_CLOEXEC), e = errno;
    taskspec_user_leave(&t->spec);
    if (fd < 0)
        return det_fail(err, DET_EPERM,
                        "user %s, whom the task runs as, cannot read the master's certificate %s "
                        "(%s) and so not speak to the master: chmod o+r it and o+x the folders "
                        "above it",
                        t->spec.user_name, ca, strerror(e));
    close(fd);
    return 0;
}

/* A rank that finds none of its own there finds another place. */
static void make_models_cache(const struct taskspec *s)
{
    det_cleanup(freep) char *dir = NULL;
    if (s->cache && s->switch_user)
        det_ignore(owncache_make(s->cache, OWNCACHE_MODELS, s->uid, s->gid, &dir, NULL),
                   "it compiles its model again");
}

void task_begin(struct task *t)
{
    struct det_err err = {0};
    const char *b64 = t->spec.task.context;
    int rc = t->spec.refusal.code;
    t->oom_before = oom_host_kills();
    if (rc < 0)
        err = t->spec.refusal;
    else
        rc = prepare_dirs(&t->spec, &err);
    if (rc == 0)
        make_models_cache(&t->spec);
    if (rc == 0 && taskbox_begin(&t->spec, &t->box, &err) < 0)
        task_say_no_box(t, &err);
    if (rc == 0)
        rc = check_certificate(t, &err);
    if (rc == 0)
        task_tell_running(t);
    if (rc == 0 && !t->spec.task.gc_uuids)
        task_reach(t);
    if (rc == 0 && b64)
        rc = prepare_context(&t->spec, b64, strlen(b64), &err);
    if (rc < 0) {
        task_fail_start(t, &err);
    } else if (b64 || t->spec.task.gc_uuids) {
        with_context(t);
    } else {
        task_connect(t);
        ask_context(t);
    }
}
