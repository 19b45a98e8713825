#include "db_reports.h"

#include "db_call.h"
#include "db_sql.h"
#include "db_texts.h"
#include "mem.h"
#include "metric_chunks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What report_metrics() says: its words stay for as long as an older version may ask it, so they
 * stand here, once. A text that ends in %s has a name behind the word. */
static const struct verdict {
    const char *word;
    int code;
    const char *text;
} verdicts[] = {
    {"", 0, ""},
    {"stale", DET_ESTALE,
     "invalid run id: the report belongs to a run of the trial that has ended"},
    {"overlap ", DET_EINVAL, "metric %s was already reported for this step with another value"},
    {"unknown", DET_ENOENT, "trial not found"},
};

static bool is_said(const struct verdict *v, const char *said)
{
    size_t n = strlen(v->word);
    bool has_name = n > 0 && v->word[n - 1] == ' ';
    return has_name ? strncmp(said, v->word, n) == 0 : strcmp(said, v->word) == 0;
}

static int judge_said(const char *said, struct det_err *err)
{
    const struct verdict *v = verdicts;
    while (v < verdicts + DET_ARRAY_LEN(verdicts) - 1 && !is_said(v, said))
        v++;
    const char *name = is_said(v, said) ? said + strlen(v->word) : "";
    return v->code ? det_fail(err, v->code, v->text, name) : 0;
}

static int judge_metrics(const struct db_result *r, struct det_err *err)
{
    return judge_said(db_rows(r) == 1 ? db_text(r, 0, 0) : "unknown", err);
}

/* A unit of these reports of one run: quiet, and for most of them of no validation. */
static struct db_tx *begin_reports(struct db *db, const struct db_metrics_report *v, size_t n)
{
    struct db_tx *tx = db_tx_begin(db);
    bool validates = strcmp(v->group, "validation") == 0;
    for (size_t i = 0; i < n && !validates; i++)
        validates = !db_has_reported(db, v[i].trial_id, v[i].run_id, v[i].steps);
    if (validates)
        db_tx_validates(tx);
    else
        db_tx_quiet(tx);
    return tx;
}

struct reporting {
    struct db *db;
    struct db_metrics_report r; /* its texts are gone */
    db_done_cb *cb;
    void *arg;
};

static void on_reported(void *arg, int rc, const struct det_err *err)
{
    struct reporting *p = arg;
    if (rc == 0)
        db_note_reported(p->db, p->r.trial_id, p->r.run_id, p->r.steps);
    if (p->cb)
        p->cb(p->arg, rc, err);
    free(p);
}

void db_report_metrics(struct db *db, const struct db_metrics_report *r, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    struct reporting *p = det_alloc(sizeof *p);
    *p = (struct reporting){db, *r, cb, arg};
    db_i64_arg(db_i64_arg(a, r->trial_id), r->run_id);
    db_i64_arg(db_str_arg(a, r->group), r->steps);
    db_time_arg(db_str_arg(a, r->metrics), r->time_us);
    db_text_arg(a, r->batches, r->batches_len);
    struct db_tx *tx = begin_reports(db, r, 1);
    db_tx_add(tx,
              "SELECT report_metrics($1::integer, $2::integer, $3, $4::integer, $5::jsonb, "
              "$6::timestamptz, $7)",
              a);
    db_tx_many(tx,
               "SELECT * FROM report_metrics_many($1::text[]::integer[], $2::text[]::integer[], "
               "$3::text[], $4::text[]::integer[], $5::text[], $6::text[]::timestamptz[], "
               "$7::text[])");
    db_call_commit(tx, judge_metrics, on_reported, p);
}

/* ---- Metrics of one trial that came together ------------------------------------------------- */

/* A batch on its way, one statement after the other: what the database refuses of one is tried
 * again before a later one is kept, so that the outcome is that of one by one. */
struct sending {
    struct db *db;
    const struct db_metrics_report *v;
    size_t n, next;  /* next: the first that was not sent */
    size_t unjoined; /* up to this one no chunks can be made here */
    size_t waiting;  /* of those that were sent */
    struct det_err passing;
    db_reported_cb *cb;
    void *arg;
};

/* Neighbours of one run and group, as one statement. */
struct piece {
    struct sending *of;
    const struct db_metrics_report *v;
    size_t first, n; /* first: its place in the batch */
};

bool db_report_is_passing(int rc)
{
    return rc == DET_EUNAVAIL || rc == DET_ECANCELED || rc == DET_ETIMEOUT;
}

static void send_next(struct sending *s);

/* s is gone after the last of them. */
static void answer_report(struct sending *s, size_t i, int rc, const struct det_err *err)
{
    if (db_report_is_passing(rc)) {
        s->passing = *err;
        s->passing.code = rc;
    }
    s->cb(s->arg, i, rc, err);
    if (--s->waiting == 0)
        send_next(s);
}

/* ---- One by itself --------------------------------------------------------------------------- */

static void on_alone(void *arg, int rc, const struct det_err *err)
{
    struct piece *p = arg;
    answer_report(p->of, p->first, rc, err);
    free(p);
}

static void send_alone(const struct piece *of, size_t i)
{
    struct piece *p = det_alloc(sizeof *p);
    *p = *of;
    p->first = of->first + i;
    db_report_metrics(p->of->db, &of->v[i], on_alone, p);
}

/* ---- Several --------------------------------------------------------------------------------- */

/* What PostgreSQL cannot read spoils the statement for all; which it is shows by trying each. */
static void on_piece(void *arg, const struct db_result *r)
{
    struct piece *p = arg;
    bool is_spoiled = db_rc(r) == DET_EINVAL || db_rc(r) == DET_ETOOBIG;
    for (size_t i = 0; i < p->n; i++) {
        struct det_err err = *db_error(r);
        int rc = db_rc(r);
        if (rc == 0)
            rc = judge_said((int)i < db_rows(r) ? db_text(r, (int)i, 0) : "unknown", &err);
        if (rc == 0)
            db_note_reported(p->of->db, p->v[i].trial_id, p->v[i].run_id, p->v[i].steps);
        if (is_spoiled)
            send_alone(p, i);
        else
            answer_report(p->of, p->first + i, rc, &err);
    }
    free(p);
}

enum { STEPS, METRICS, TIMES, BATCHES, NAMES, ENDS, DOCS, LINES, VALUES, COLUMNS };

static void add_text(struct db_texts *t, const char *s)
{
    db_texts_add(t, s, strlen(s));
}

static void add_buf(struct db_texts *t, const struct buf *b)
{
    db_texts_add(t, b->p, b->len);
}

static void add_report(struct db_texts *columns, const struct db_metrics_report *r)
{
    db_texts_add_i32(&columns[STEPS], r->steps);
    add_text(&columns[METRICS], r->metrics);
    db_texts_add_time(&columns[TIMES], r->time_us);
    db_texts_add(&columns[BATCHES], r->batches, r->batches_len);
}

static void add_chunks(struct db_texts *columns, const struct metric_chunks *c)
{
    for (size_t i = 0; i < c->names_n; i++)
        db_texts_add(&columns[NAMES], c->names[i].p, c->names[i].len);
    for (size_t i = 0; i < c->n; i++) {
        db_texts_add_i32(&columns[ENDS], (int64_t)c->v[i].end);
        add_buf(&columns[DOCS], &c->v[i].doc);
        add_buf(&columns[LINES], &c->v[i].line);
        add_buf(&columns[VALUES], &c->v[i].values);
    }
}

/* Without chunks some have none. */
static void add_column(struct db_args *a, struct db_texts *t)
{
    if (t->n == 0) {
        db_null_arg(a);
        return;
    }
    db_texts_end(t);
    db_bytes_arg(a, t->b.p, t->b.len);
}

static void send_piece(const struct piece *of, const struct metric_chunks *chunks)
{
    struct db_args *a = DB_ARGS;
    struct db_texts columns[COLUMNS] = {0};
    struct piece *p = det_alloc(sizeof *p);
    *p = *of;
    for (size_t i = 0; i < p->n; i++)
        add_report(columns, &p->v[i]);
    add_chunks(columns, chunks);
    db_str_arg(db_i64_arg(db_i64_arg(a, p->v->trial_id), p->v->run_id), p->v->group);
    for (int i = 0; i < COLUMNS; i++)
        add_column(a, &columns[i]);
    db_text_arg(a, chunks->whole.p, chunks->whole.len);
    struct db_tx *tx = begin_reports(p->of->db, p->v, p->n);
    db_tx_add(tx,
              "SELECT report_metrics_batch($1::integer, $2::integer, $3, $4::integer[], "
              "$5::text[], $6::timestamptz[], $7::text[], $8::text[], "
              "$9::integer[], $10::text[], $11::text[], $12::text[], $13)",
              a);
    db_tx_commit(tx, on_piece, p);
    for (int i = 0; i < COLUMNS; i++)
        db_texts_finish(&columns[i]);
}

/* ---- What goes together ---------------------------------------------------------------------- */

static bool make_chunks(struct metric_chunks *c, const struct piece *p)
{
    struct metric_point_set v[METRIC_BATCH_MAX];
    assert(p->n <= METRIC_BATCH_MAX);
    for (size_t i = 0; i < p->n; i++)
        v[i] = (struct metric_point_set){p->v[i].steps, p->v[i].time_us, p->v[i].object,
                                         p->v[i].values, p->v[i].values_n};
    return metric_chunks_make(c, v, p->n);
}

/* A validation has consequences of its own. */
static bool goes_alone(const struct piece *p)
{
    return p->n == 1 || strcmp(p->v->group, "validation") == 0;
}

static bool is_like(const struct db_metrics_report *a, const struct db_metrics_report *b)
{
    return a->run_id == b->run_id && strcmp(a->group, b->group) == 0;
}

static struct piece find_piece(struct sending *s)
{
    struct piece p = {.of = s, .v = s->v + s->next, .first = s->next, .n = 1};
    while (s->next + p.n < s->n && is_like(p.v, &p.v[p.n]))
        p.n++;
    return p;
}

/* Where no chunks can be made here, the database makes one of a piece, and it is no larger than
 * others. */
static void send_joined(struct piece *p)
{
    struct sending *s = p->of;
    struct metric_chunks c = {0};
    bool is_joined = s->next >= s->unjoined && make_chunks(&c, p);
    if (!is_joined && s->next >= s->unjoined)
        s->unjoined = s->next + p->n;
    if (!is_joined && p->n > METRIC_CHUNK_REPORTS)
        p->n = METRIC_CHUNK_REPORTS;
    s->waiting = p->n;
    s->next += p->n;
    send_piece(p, &c);
    if (is_joined)
        metric_chunks_finish(&c);
}

static void send_each(const struct piece *p)
{
    p->of->waiting = p->n;
    p->of->next += p->n;
    for (size_t i = 0; i < p->n; i++)
        send_alone(p, i);
}

/* The rest would wait for a database that is away. */
static void give_up(struct sending *s)
{
    for (; s->next < s->n; s->next++)
        s->cb(s->arg, s->next, s->passing.code, &s->passing);
}

static void send_next(struct sending *s)
{
    if (s->passing.code < 0)
        give_up(s);
    if (s->next == s->n) {
        free(s);
        return;
    }
    struct piece p = find_piece(s);
    if (goes_alone(&p))
        send_each(&p);
    else
        send_joined(&p);
}

void db_report_metrics_batch(struct db *db, const struct db_metrics_report *v, size_t n,
                             db_reported_cb *cb, void *arg)
{
    struct sending *s = det_zalloc(sizeof *s);
    *s = (struct sending){.db = db, .v = v, .n = n, .cb = cb, .arg = arg};
    send_next(s);
}

/* ---- All else ---------------------------------------------------------------------------------
 */

/* What KEEP_CHECKPOINT answers. */
enum { KEPT = 0, TAKEN = 1, STALE = 2 };

static int judge_checkpoint(const struct db_result *r, struct det_err *err)
{
    int64_t verdict = db_rows(r) == 1 ? db_i64(r, 0, 0) : STALE;
    if (verdict == KEPT)
        return 0;
    if (verdict == TAKEN)
        return det_fail(err, DET_EEXIST, "the checkpoint's uuid belongs to another trial");
    return det_fail(err, DET_ESTALE, "the checkpoint belongs to a run of the trial that has ended");
}

/* clang-format off */
#define OF_RUN "id = $4::integer AND run_id = $5::integer"
#define OF_UNMANAGED_TASK                                                                          \
    "task_id = $2 AND $4::integer = 0 AND CASE WHEN $5::integer = 0 THEN heartbeat IS NOT NULL "   \
    "ELSE run_id = $5::integer AND EXISTS (SELECT 1 FROM experiments e WHERE e.id = "              \
    "experiment_id AND e.unmanaged) END"
#define KEEP_CHECKPOINT(trial)                                                                     \
    "WITH fence AS (SELECT id, experiment_id, run_id FROM trials WHERE " trial " FOR UPDATE), "    \
    "kept AS (INSERT INTO checkpoints (uuid, task_id, allocation_id, experiment_id, trial_id, "    \
    " run_id, state, steps, metadata, resources, bytes, report_time, hashes) "                             \
    " SELECT $1, $2, $3, f.experiment_id, f.id, f.run_id, 'COMPLETED', $6::integer, "              \
    " $7::jsonb, $8::jsonb, "                                                                      \
    " (SELECT coalesce(sum(v.value::bigint), 0) FROM jsonb_each_text($8::jsonb) v), "              \
    " $9::timestamptz, $10::jsonb "                                                                           \
    " FROM fence f ON CONFLICT (uuid) DO UPDATE SET metadata = excluded.metadata, "                \
    " resources = excluded.resources, bytes = excluded.bytes, state = excluded.state, "            \
    " hashes = coalesce(excluded.hashes, CASE WHEN checkpoints.resources = "                       \
    "  excluded.resources THEN checkpoints.hashes END), "                                          \
    " steps = excluded.steps WHERE checkpoints.trial_id = excluded.trial_id "                      \
    " AND checkpoints.state IN ('ACTIVE', 'COMPLETED') RETURNING 1) "                              \
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM kept) THEN 0 "                                         \
    "WHEN EXISTS (SELECT 1 FROM fence) THEN 1 ELSE 2 END"
/* clang-format on */

void db_report_checkpoint(struct db *db, const struct db_checkpoint_report *r, db_done_cb *cb,
                          void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, r->uuid), r->task_id), r->allocation_id);
    db_i64_arg(db_i64_arg(a, r->trial_id), r->run_id);
    db_str_arg(db_str_arg(db_i64_arg(a, r->steps), r->metadata), r->resources);
    db_str_arg(db_time_arg(a, r->time_us), r->hashes);
    db_call_write(db, r->trial_id ? KEEP_CHECKPOINT(OF_RUN) : KEEP_CHECKPOINT(OF_UNMANAGED_TASK), a,
                  judge_checkpoint, cb, arg);
}

void db_report_runner_state(struct db *db, int64_t trial_id, int64_t run_id, const char *state,
                            int64_t epoch_batches, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_str_arg(db_i64_arg(db_i64_arg(a, trial_id), run_id), state), epoch_batches);
    db_call_write(db, sql_report_runner_state, a, db_judge_fence, cb, arg);
}

void db_report_progress(struct db *db, int64_t trial_id, int64_t run_id, double trial_progress,
                        double experiment_progress, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_f64_arg(db_i64_arg(db_i64_arg(a, trial_id), run_id), trial_progress);
    if (experiment_progress < 0)
        db_null_arg(a);
    else
        db_f64_arg(a, experiment_progress);
    db_call_write(db,
                  "WITH t AS (UPDATE trials SET progress = $3::float8, last_activity = now() "
                  "WHERE id = $1::integer AND run_id = $2::integer RETURNING experiment_id), "
                  "e AS (UPDATE experiments SET progress = $4::float8 "
                  "WHERE id = (SELECT experiment_id FROM t) AND $4::float8 IS NOT NULL) "
                  "SELECT 1 FROM t",
                  a, db_judge_fence, cb, arg);
}

void db_report_profile(struct db *db, int64_t trial_id, int64_t run_id, const char *labels,
                       const char *batch, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(db_i64_arg(a, trial_id), run_id), labels), batch);
    db_call_write(db,
                  "INSERT INTO profiler_metrics (trial_id, labels, batch) "
                  "SELECT id, $3::jsonb, $4::jsonb FROM trials "
                  "WHERE id = $1::integer AND run_id = $2::integer FOR SHARE",
                  a, db_judge_fence, cb, arg);
}

void db_report_accelerators(struct db *db, const struct db_accelerators *x, db_done_cb *cb,
                            void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, x->allocation_id), x->container_id), x->task_id);
    db_str_arg(db_str_arg(db_str_arg(a, x->node_name), x->type), x->uuids);
    db_call_write(db,
                  "INSERT INTO accelerators (allocation_id, container_id, task_id, node_name, "
                  "accelerator_type, accelerator_uuids) VALUES ($1, $2, $3, $4, $5, $6::jsonb) "
                  "ON CONFLICT (allocation_id, container_id) DO UPDATE SET "
                  "node_name = excluded.node_name, accelerator_type = excluded.accelerator_type, "
                  "accelerator_uuids = excluded.accelerator_uuids",
                  a, NULL, cb, arg);
}
