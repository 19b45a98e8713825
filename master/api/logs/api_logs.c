/*
 * A stream of log lines: pages by id until drained; a follower then waits for the hub to say that
 * new lines were committed. It ends when a page that was asked for after the task had ended comes
 * back short. Of a trial that runs elsewhere (unmanaged) the database is asked whether it has.
 * While the database is away a follower waits for it.
 */
#include "api_logs.h"
#include "api_util.h"
#include "db_logs.h"
#include "db_trial_read.h"
#include "driver.h"
#include "hub.h"
#include "shell.h"
#include <string.h>

enum { PAGE = 1000, LOOK_MS = 200, LOOKS_ELSEWHERE = 10, STRINGS = 9 };

struct logs {
    struct shell *sh;
    struct http_stream *stream;
    struct db_log_filter f;
    char *strings[STRINGS];         /* what f points to */
    int64_t trial_id, beyond, left; /* left < 0: no limit */
    bool follow, busy, dirty, final, over;
    bool here;      /* the core has told of its task */
    bool elsewhere; /* its trial runs, and not on this cluster: only the database knows */
    bool asked;     /* the database, whether it does */
    bool again;     /* it was away: what was asked is asked again */
    bool settled;   /* what ended the task is written, its last lines with it */
    int looks;
    struct hub_watch *watch;
    uv_timer_t timer; /* looks whether the task has ended */
};

bool logs_is_live(struct shell *sh, const char *task_id, int64_t trial_id)
{
    struct core_trial_view t;
    struct core_alloc_view a;
    if (trial_id && core_trial_get(api_core(sh), trial_id, &t) && !trial_state_is_terminal(t.state))
        return true;
    for (size_t i = 0; core_alloc_at(api_core(sh), i, &a); i++)
        if (!strcmp(a.task_id, task_id))
            return true;
    return false;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct logs *l = h->data;
    for (size_t i = 0; i < STRINGS; i++)
        free(l->strings[i]);
    free(l);
}

static void logs_end(struct logs *l)
{
    l->over = true;
    if (l->busy)
        return;
    hub_unwatch(l->watch);
    http_stream_end(l->stream);
    uv_close((uv_handle_t *)&l->timer, on_timer_closed);
}

static void on_lines(void *arg, const struct db_result *r);
static void logs_next(struct logs *l);

static void on_state(void *arg, const struct db_result *r)
{
    struct logs *l = arg;
    l->busy = false;
    l->again = db_is_away(r);
    l->asked = !l->again;
    if (db_rc(r) == 0)
        l->elsewhere =
            db_rows(r) > 0 && trial_state_is(db_text(r, 0, TRIAL_END_STATE), TRIAL_ACTIVE);
    if (l->over)
        logs_end(l);
    else if (!l->again)
        logs_next(l);
}

static void on_settled(void *arg, const struct core_reply *reply)
{
    struct logs *l = arg;
    l->busy = false;
    l->settled = reply->code == 0;
    l->again = !l->settled;
    if (l->over)
        logs_end(l);
    else if (l->settled)
        logs_next(l);
}

static bool may_end(struct logs *l)
{
    if (l->follow && logs_is_live(l->sh, l->f.task_id, l->trial_id)) {
        l->here = true;
        return false;
    }
    return !l->follow || !l->elsewhere;
}

static void logs_next(struct logs *l)
{
    if (l->busy || l->over)
        return;
    if (http_stream_is_gone(l->stream)) {
        logs_end(l);
        return;
    }
    if (http_stream_is_full(l->stream))
        return;
    l->busy = true;
    l->dirty = false;
    l->final = may_end(l);
    if (l->follow && l->trial_id && !l->here && !l->asked) {
        l->asked = true;
        db_trial_end(l->sh->db, l->trial_id, on_state, l);
        return;
    }
    if (l->follow && l->final && !l->settled) { /* the core knows an end before it is written */
        driver_barrier(l->sh->driver, on_settled, l);
        return;
    }
    db_log_read(l->sh->db, &l->f, l->beyond, l->left >= 0 && l->left < PAGE ? l->left : PAGE,
                on_lines, l);
}

void logs_error(const struct db_result *r, struct det_err *ret)
{
    *ret = *db_error(r);
    if (db_timed_out(r))
        (void)det_fail(
            ret, DET_ETIMEOUT,
            "reading the log takes too long: narrow it down by time, rank or level, or use "
            "a simpler searchText");
}

static void on_lines(void *arg, const struct db_result *r)
{
    struct logs *l = arg;
    int n = db_rows(r);
    l->busy = false;
    l->again = l->follow && db_is_away(r);
    if (l->again && !l->over)
        return;
    if (l->over || db_rc(r) < 0) {
        struct det_err err;
        logs_error(r, &err);
        if (!l->over)
            http_stream_error(l->stream, err.code, err.text);
        logs_end(l);
        return;
    }
    struct buf line = BUF_INIT;
    for (int i = 0; i < n; i++) {
        buf_clear(&line);
        log_line_write(&line, r, i, l->f.trial_id);
        http_stream_result(l->stream, line.p, line.len);
    }
    buf_finish(&line);
    if (n)
        l->beyond = db_i64(r, n - 1, 0);
    if (l->left >= 0)
        l->left -= n;
    if (l->left == 0 || (n < PAGE && l->final))
        logs_end(l);
    else if (n == PAGE || l->dirty)
        logs_next(l);
}

static void on_new_lines(void *arg)
{
    struct logs *l = arg;
    l->dirty = true;
    logs_next(l);
}

static void on_wake(void *arg)
{
    struct logs *l = arg;
    if (http_stream_is_gone(l->stream))
        logs_end(l);
    else
        logs_next(l);
}

static void on_look(uv_timer_t *t)
{
    struct logs *l = t->data;
    if (l->again) {
        logs_next(l);
        return;
    }
    if (logs_is_live(l->sh, l->f.task_id, l->trial_id))
        return;
    if (l->elsewhere && ++l->looks % LOOKS_ELSEWHERE)
        return;
    l->asked = l->asked && !l->elsewhere;
    logs_next(l);
}

/* The filter's strings become the stream's own. */
static void logs_own(struct logs *l, const struct db_log_filter *f)
{
    l->f = *f;
    const char **fields[STRINGS] = {&l->f.task_id,       &l->f.allocation_ids, &l->f.agent_ids,
                                    &l->f.container_ids, &l->f.stdtypes,       &l->f.sources,
                                    &l->f.rank_ids,      &l->f.levels,         &l->f.search};
    for (size_t i = 0; i < STRINGS; i++)
        *fields[i] = l->strings[i] = det_strdup(*fields[i]);
}

void logs_stream(struct shell *sh, struct http_req *req, const struct db_log_filter *f,
                 int64_t trial_id, int64_t limit, bool follow)
{
    struct logs *l = det_zalloc(sizeof *l);
    l->sh = sh;
    logs_own(l, f);
    l->trial_id = trial_id;
    l->beyond = f->beyond_id;
    l->left = limit ? limit : -1;
    l->follow = follow;
    uv_timer_init(sh->loop, &l->timer);
    l->timer.data = l;
    if (follow) {
        l->watch = hub_watch(sh->hub, l->f.task_id, on_new_lines, l);
        uv_timer_start(&l->timer, on_look, LOOK_MS, LOOK_MS);
    }
    l->stream = http_stream_begin(req, NULL, on_wake, l);
    logs_next(l);
    if (f->before_us || f->after_us)
        db_logs_mark(sh->db, f->task_id);
}

bool logs_query(struct http_req *req, struct db_log_filter *f, int64_t *limit, bool *follow)
{
    int order, flag, regex;
    const char *search = http_query(req, "searchText");
    if (!api_query_strings(req, "allocationIds", &f->allocation_ids) ||
        !api_query_strings(req, "agentIds", &f->agent_ids) ||
        !api_query_strings(req, "containerIds", &f->container_ids) ||
        !api_query_strings(req, "stdtypes", &f->stdtypes) ||
        !api_query_strings(req, "sources", &f->sources) ||
        !api_query_ints(req, "rankIds", &f->rank_ids) ||
        !api_query_enums(req, "levels", wire_log_level, 0, &f->levels) ||
        !api_query_time(req, "timestampBefore", &f->before_us) ||
        !api_query_time(req, "timestampAfter", &f->after_us) ||
        !api_query_i64(req, "limit", 0, limit) ||
        !api_query_i64(req, "beyondId", 0, &f->beyond_id) ||
        !api_query_enum(req, "orderBy", wire_order_by, &order) ||
        !api_query_flag(req, "enableRegex", &regex) || !api_query_flag(req, "follow", &flag))
        return false;
    *follow = flag == 1;
    f->is_regex = regex == 1;
    f->desc = order == 2;
    f->search = search && *search ? search : NULL;
    const char *wrong = *limit < 0           ? "limit must not be negative"
                        : f->beyond_id < 0   ? "beyondId must not be negative"
                        : *follow && *limit  ? "limit and follow exclude each other"
                        : *follow && f->desc ? "follow goes forward only: leave orderBy out"
                                             : NULL;
    if (wrong)
        http_fail(req, DET_EINVAL, "%s", wrong);
    return !wrong;
}
