/* The distinct fields of a task's log lines: once, or again every 5 s until the task has ended,
 * also after the database was away. */
#include "api_logs.h"
#include "api_util.h"
#include "db_trial_read.h"
#include "shell.h"

enum { AGAIN_MS = 5000 };

struct fields {
    struct shell *sh;
    struct http_stream *stream;
    char *task_id;
    int64_t trial_id;
    bool of_trial, follow, busy, over, final;
    uv_timer_t timer;
};

static void on_timer_closed(uv_handle_t *h)
{
    struct fields *f = h->data;
    free(f->task_id);
    free(f);
}

static void fields_end(struct fields *f)
{
    f->over = true;
    if (f->busy)
        return;
    http_stream_end(f->stream);
    uv_close((uv_handle_t *)&f->timer, on_timer_closed);
}

static void on_fields(void *arg, const struct db_result *r)
{
    struct fields *f = arg;
    f->busy = false;
    if (!f->over && f->follow && db_is_away(r))
        return;
    if (!f->over && db_rc(r) < 0)
        http_stream_error(f->stream, db_rc(r), db_error(r)->text);
    else if (!f->over)
        http_stream_result(f->stream, db_text(r, 0, 0), db_text_len(r, 0, 0));
    if (f->over || f->final || db_rc(r) < 0)
        fields_end(f);
}

static void fields_ask(struct fields *f, bool final)
{
    f->final = final;
    db_log_fields(f->sh->db, f->task_id, f->of_trial, on_fields, f);
}

static void on_state(void *arg, const struct db_result *r)
{
    struct fields *f = arg;
    if (f->over || db_is_away(r)) {
        f->busy = false;
        if (f->over)
            fields_end(f);
        return;
    }
    bool runs = db_rc(r) == 0 && db_rows(r) > 0 &&
                trial_state_is(db_text(r, 0, TRIAL_END_STATE), TRIAL_ACTIVE);
    fields_ask(f, !runs);
}

/* Of a trial that runs elsewhere only the database knows whether it has ended. */
static void fields_read(struct fields *f)
{
    if (f->busy || f->over || http_stream_is_full(f->stream))
        return;
    f->busy = true;
    bool here = f->follow && logs_is_live(f->sh, f->task_id, f->trial_id);
    if (f->follow && !here && f->trial_id)
        db_trial_end(f->sh->db, f->trial_id, on_state, f);
    else
        fields_ask(f, !here);
}

static void on_again(uv_timer_t *t)
{
    fields_read(t->data);
}

static void on_wake(void *arg)
{
    struct fields *f = arg;
    if (http_stream_is_gone(f->stream))
        fields_end(f);
}

void logs_fields_stream(struct shell *sh, struct http_req *req, const char *task_id,
                        int64_t trial_id, bool of_trial, bool follow)
{
    struct fields *f = det_zalloc(sizeof *f);
    *f = (struct fields){.sh = sh,
                         .task_id = det_strdup(task_id),
                         .trial_id = trial_id,
                         .of_trial = of_trial,
                         .follow = follow};
    uv_timer_init(sh->loop, &f->timer);
    f->timer.data = f;
    if (follow)
        uv_timer_start(&f->timer, on_again, AGAIN_MS, AGAIN_MS);
    f->stream = http_stream_begin(req, NULL, on_wake, f);
    fields_read(f);
}
