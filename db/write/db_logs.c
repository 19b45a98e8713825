#include "db_logs.h"

#include "buf.h"
#include "clk.h"
#include "db_call.h"
#include "json.h"
#include "mem.h"

#include <stdlib.h>
#include <string.h>

static json_t *opt_text(const char *s)
{
    return s ? json_lossy(s, strlen(s)) : json_null();
}

/* PostgreSQL's text cannot hold NUL: U+FFFD stands for it. */
static json_t *log_text(const char *p, size_t n)
{
    if (!memchr(p, 0, n))
        return json_lossy(p, n);
    struct buf b = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        if (p[i])
            buf_add_ch(&b, p[i]);
        else
            buf_add_str(&b, "\xef\xbf\xbd");
    }
    json_t *j = json_lossy(buf_str(&b), b.len);
    buf_finish(&b);
    return j;
}

static json_t *line_json(const struct db_log_line *l)
{
    char time[CLK_RFC3339_MAX];
    clk_format(l->time_us ? l->time_us : clk_wall_us(), time);
    json_t *j = json_object();
    json_set(j, "t", opt_text(l->task_id));
    json_set(j, "a", opt_text(l->allocation_id));
    json_set(j, "g", opt_text(l->agent_id));
    json_set(j, "c", opt_text(l->container_id));
    json_set(j, "r", l->rank >= 0 ? json_integer(l->rank) : json_null());
    json_set(j, "l", l->level ? json_integer(l->level) : json_null());
    json_set(j, "d", opt_text(l->stdtype));
    json_set(j, "s", opt_text(l->source));
    json_set(j, "w", json_string(time));
    json_set(j, "x", log_text(l->log, l->log_len));
    json_set(j, "o", l->offset >= 0 ? json_integer(l->offset) : json_null());
    return j;
}

static const char insert[] =
    "INSERT INTO task_logs (task_id, allocation_id, agent_id, container_id, rank_id, "
    "level, stdtype, source, time, log, log_offset) "
    "SELECT t, a, g, c, r, l, d, s, w, x, o FROM json_to_recordset($1::json) AS "
    "v(t text, a text, g text, c text, r integer, l smallint, d text, s text, "
    "w timestamptz, x text, o bigint) ON CONFLICT DO NOTHING";

static void lines_text(const struct db_log_line *lines, size_t n, struct buf *out)
{
    JSON_OWN all = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, line_json(&lines[i]));
    json_write(out, all);
}

void db_logs_write(struct db *db, const struct db_log_line *lines, size_t n, db_done_cb *cb,
                   void *arg)
{
    struct db_tx *tx = db_tx_begin(db);
    db_logs_add(tx, lines, n);
    db_tx_quiet(tx);
    db_call_commit(tx, NULL, cb, arg);
}

void db_logs_add(struct db_tx *tx, const struct db_log_line *lines, size_t n)
{
    struct buf text = BUF_INIT;
    lines_text(lines, n, &text);
    db_tx_add(tx, insert, db_text_arg(DB_ARGS, buf_str(&text), text.len));
    buf_finish(&text);
}

struct marking {
    struct db *db;
    char *task_id;
};

/* Whether more is to be marked, asked or done. A failure ends it: who reads next begins again. */
static void on_marks(void *arg, const struct db_result *r)
{
    struct marking *m = arg;
    if (db_rc(r) == 0 && db_rows(r) && db_bool(r, 0, 0)) {
        db_write(m->db, "SELECT mark_old_log($1)", db_str_arg(DB_ARGS, m->task_id), on_marks, m);
        return;
    }
    free(m->task_id);
    free(m);
}

void db_logs_mark(struct db *db, const char *task_id)
{
    struct marking *m = det_zalloc(sizeof *m);
    *m = (struct marking){db, det_strdup(task_id)};
    db_query(db, "SELECT log_lags($1)", db_str_arg(DB_ARGS, task_id), on_marks, m);
}
