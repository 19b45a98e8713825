/* What a task says: its output and the reports of its ranks, on their way to the master. */
#include "task.h"

#include "log.h"

#include <unistd.h>

#define REPORTS_MS        10000
#define REPORTS_KILLED_MS 400
/* In all, by a successor: who ended det-task may wait for a kill's end. */
#define REPORTS_LOST_MS 5000

/* ---- output ---- */

static void pause_ranks(struct task *t, bool pause)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        rank_pause(t->ranks.v[i], pause);
}

bool task_explains(const struct task *t, const char *text, struct buf *out)
{
    const struct taskspec *s = &t->spec;
    const struct unseen u = {taskbox_is_open(&t->box) && taskspec_is_kept_apart(s), s->user_name,
                             (unsigned)s->uid};
    return unseen_explain(&u, text, out);
}

/* As whose end tells it: a command's is rank 0's. */
static int find_speaker(const struct task *t, const struct rank *r)
{
    for (size_t i = 0; i < t->steps.n; i++)
        if (t->steps.v[i] == r)
            return RANK_NO_RANK;
    return rank_number(r) < 0 ? 0 : rank_number(r);
}

/* Behind the first line that it explains. */
static void explain_unseen(struct task *t, const struct rank *r, const struct logline *l)
{
    det_cleanup(buf_finish) struct buf why = BUF_INIT;
    bool is_such = task_explains(t, l->text, &why);
    unseen_last_line(&t->unseen, find_speaker(t, r), is_such ? buf_str(&why) : NULL);
    if (!is_such || t->has_told_unseen)
        return;
    t->has_told_unseen = true;
    logspool_say(t->spool, LOGLINE_WARNING, "Of the line above: %s.", buf_str(&why));
}

void task_on_line(void *arg, const struct rank *r, const char *stdtype, const struct logline *l)
{
    struct task *t = arg;
    if (strcmp(stdtype, "stderr") == 0 && task_stacks_keep(t, r, l))
        return;
    traceback_line(&t->traceback, t->spec.dir, l->rank >= 0 ? l->rank : rank_number(r), l);
    logspool_add(t->spool, stdtype, rank_number(r), l);
    explain_unseen(t, r, l);
    if (t->life.phase == TASK_HOOKING)
        task_happens(t, TASKLIFE_SAID);
    if (t->life.phase < TASK_KILLING && logspool_is_full(t->spool))
        pause_ranks(t, true);
    task_connect(t);
    logship_kick(t->ship);
}

static void on_room(void *arg)
{
    struct task *t = arg;
    if (!logspool_is_full(t->spool))
        pause_ranks(t, false);
}

void task_connect(struct task *t)
{
    struct det_err err;
    if (t->http)
        return;
    struct client_options o = {.url = t->spec.master,
                               .token_kind = CLIENT_TOKEN_ALLOCATION,
                               .token = t->spec.task.token,
                               .ca_file = t->spec.ca_file,
                               .cert_name = t->spec.cert_name};
    if (client_uv_create(t->loop, &o, &t->http, &err) < 0) {
        log_error("%s", err.text); /* the agent has checked the URL: only memory can be short */
        _exit(1);
    }
    t->ship = logship_create(t->loop, t->http, t->spool);
    logship_on_room(t->ship, on_room, t);
    logship_kick(t->ship);
}

/* ---- once nothing of it runs: pipes, then reports, then the log ---- */

static void on_reports(void *arg, const struct reports_tally *n)
{
    struct task *t = arg;
    t->reports = NULL;
    if (n->sent > 0)
        logspool_say(t->spool, LOGLINE_INFO, "%zu reports that ranks had left were sent", n->sent);
    if (n->refused > 0)
        logspool_say(t->spool, LOGLINE_WARNING,
                     "%zu reports that ranks had left are lost, the master refused them: %s",
                     n->refused, n->refusal.text);
    if (n->left > 0)
        logspool_say(t->spool, LOGLINE_WARNING, "reports of %zu ranks could not be sent", n->left);
    task_happens(t, TASKLIFE_REPORTED);
}

void task_send_reports(struct task *t)
{
    const struct tasklife *l = &t->life;
    logspool_end(t->spool);
    if (!reports_are_left(&t->spec)) {
        on_reports(t, &(struct reports_tally){0});
        return;
    }
    task_connect(t);
    struct reports_limits limits = {.retry_ms = l->hurry == TASKLIFE_HURRIED ? 0 : REPORTS_MS,
                                    .all_ms = l->hurry > TASKLIFE_PATIENT ? REPORTS_KILLED_MS
                                              : l->is_successor           ? REPORTS_LOST_MS
                                                                          : 0};
    t->reports = reports_start(t->loop, t->http, &t->spec, limits, on_reports, t);
}

void task_hurry_reports(struct task *t)
{
    if (t->reports)
        reports_hurry(t->reports, REPORTS_KILLED_MS);
}

static void on_log_empty(void *arg)
{
    task_happens(arg, TASKLIFE_LOG_EMPTY);
}

void task_send_log(struct task *t)
{
    if (logspool_unsent(t->spool) == 0) {
        task_happens(t, TASKLIFE_LOG_EMPTY);
        return;
    }
    task_connect(t);
    logship_when_empty(t->ship, on_log_empty, t);
}

static bool pipes_are_silent(const struct task *t)
{
    for (size_t i = 0; i < t->ranks.n; i++)
        if (!rank_is_silent(t->ranks.v[i]))
            return false;
    for (size_t i = 0; i < t->steps.n; i++)
        if (!rank_is_silent(t->steps.v[i]))
            return false;
    return true;
}

void task_read_pipes(struct task *t)
{
    const struct tasklife *l = &t->life;
    if (l->exit.reason == LINK_KILLED || l->exit.reason == LINK_STALLED)
        marks_add(&t->marks, "killed", l->killed_in_ms, "%s", l->text);
    ports_give(&t->ports);
    pause_ranks(t, false);
    if (pipes_are_silent(t))
        task_happens(t, TASKLIFE_SILENT);
}

void task_on_silent(void *arg, struct rank *r)
{
    struct task *t = arg;
    if (t->life.phase == TASK_PIPES && pipes_are_silent(t))
        task_happens(t, TASKLIFE_SILENT);
}
