#include "db_metric_news.h"

/* Most trials have ended, and all that they reported is in their summary (index trials_tails). */
#define MAY_HAVE_TAIL "(t.has_tail OR trial_is_live(t.state))"
#define ENDED         "bool_and(is_terminal(state))"

/* An experiment's trials t that have reported since their last summary, and for which groups h: few
 * rows, whatever the planner thinks of their number. Else it reads all their reports first. */
#define HEADS_OF(exp_id, groups)                                                                   \
    "LATERAL (SELECT t.id FROM trials t WHERE t.experiment_id = " exp_id " AND " MAY_HAVE_TAIL     \
    " OFFSET 0) t, LATERAL (SELECT * FROM metric_heads WHERE trial_id = t.id AND tail > 0 "        \
    "AND " groups " OFFSET 0) h"
/* What they have reported since then, as m. */
#define TAILS_OF(exp_id)                                                                           \
    HEADS_OF(exp_id, "true")                                                                       \
    ", LATERAL (SELECT grp, metrics->metrics_key(grp) named FROM metrics "                         \
    "WHERE trial_id = h.trial_id AND grp = h.grp AND NOT archived "                                \
    "AND steps > h.closed_steps AND steps <= h.steps OFFSET 0) m"

void db_metric_names(struct db *db, const char *ids, db_cb *cb, void *arg)
{
    db_query_chart(
        db,
        "WITH e AS MATERIALIZED (SELECT id, state, searcher_metric FROM experiments WHERE id = "
        "ANY (ARRAY(SELECT x::integer FROM jsonb_array_elements_text($1::jsonb) x))), "
        "n AS (SELECT m.grp, m.name FROM e, LATERAL (SELECT grp, name FROM metric_names "
        "WHERE experiment_id = e.id AND trials > 0 OFFSET 0) m "
        "UNION SELECT summary_key(m.grp) COLLATE \"default\", k.name FROM e, " TAILS_OF(
            "e.id") ", jsonb_object_keys(m.named) k(name)) "
                    "SELECT CASE WHEN (SELECT count(*) FROM e) = "
                    "(SELECT count(DISTINCT x) FROM jsonb_array_elements($1::jsonb) x) THEN "
                    "jsonb_build_object('searcherMetrics', (SELECT coalesce(jsonb_agg(DISTINCT searcher_metric), "
                    "'[]') FROM e WHERE searcher_metric <> ''), "
                    "'trainingMetrics', coalesce(jsonb_agg(name ORDER BY name) "
                    "FILTER (WHERE grp = 'avg_metrics'), '[]'), "
                    "'validationMetrics', coalesce(jsonb_agg(name ORDER BY name) "
                    "FILTER (WHERE grp = 'validation_metrics'), '[]'), "
                    "'metricNames', coalesce(jsonb_agg(jsonb_build_object('group', CASE grp WHEN 'avg_metrics' "
                    "THEN 'training' WHEN 'validation_metrics' THEN 'validation' ELSE grp END, 'name', name) "
                    "ORDER BY grp, name), '[]')) END, (SELECT " ENDED " FROM e), 0, NULL FROM n",
        db_str_arg(DB_ARGS, ids), cb, arg);
}

/* $1 experiment, $2 group, $3 metric, $4 since, $5 from, $6 to */
static struct db_args *news_args(struct db_args *a, const struct db_metric_news *n)
{
    db_str_arg(db_str_arg(db_i64_arg(a, n->exp_id), n->group), n->name);
    return db_i64_arg(db_i64_arg(db_i64_arg(a, n->since), n->from), n->to);
}

/* Trials of experiment $1 whose reports may be looked for in vain in what rests on the state of
 * trials alone: they run, or reported after they had ended. The newest of all, too: those that come
 * after it are not there yet. */
#define OPEN_IDS                                                                                   \
    "SELECT coalesce(jsonb_agg(o.id) FILTER (WHERE o.id IS NOT NULL), '[]') FROM ("                \
    "SELECT t.id FROM trials t WHERE t.experiment_id = $1::bigint AND " MAY_HAVE_TAIL              \
    " UNION SELECT max(id) FROM trials WHERE experiment_id = $1::bigint) o"
#define IDS_IN(ids) "jsonb_array_elements_text(" ids "::jsonb) x"
/* These, as t, and those which were so before, or have to be compared with them, or came since:
 * looked up by id, whatever the planner thinks of their number. */
#define OPEN_TRIALS(ids)                                                                           \
    "(SELECT x::integer id FROM " IDS_IN(                                                          \
        ids) " UNION "                                                                             \
             "SELECT t.id FROM trials t WHERE t.experiment_id = $1::bigint AND " MAY_HAVE_TAIL     \
             " UNION "                                                                             \
             "SELECT t.id FROM trials t WHERE t.experiment_id = $1::bigint AND t.id > "            \
             "(SELECT coalesce(max(x::integer), 0) FROM " IDS_IN(                                  \
                 ids) ")) o, "                                                                     \
                      "LATERAL (SELECT * FROM trials t WHERE t.id = o.id AND t.experiment_id = $1::bigint OFFSET 0) t"

/* Reports of the metric in trials t, as m. */
#define REPORTS                                                                                    \
    "metrics m WHERE m.trial_id = t.id AND m.grp = $2 AND NOT m.archived "                         \
    "AND m.steps BETWEEN $5::bigint AND $6::bigint "                                               \
    "AND jsonb_typeof(m.metrics->metrics_key($2)->$3::text) = 'number' "
#define VALUE "m.metrics->metrics_key($2)->$3::text"
/* The answer is there when the experiment is. It is made as text: 5,000 documents of jsonb take 50
 * ms. */
#define NEWS(doc, ids, from)                                                                       \
    "SELECT CASE WHEN count(e.id) > 0 THEN " doc " END, " ENDED                                    \
    ", coalesce(max(x.newest), 0), " ids                                                           \
    " FROM (SELECT id, state FROM experiments WHERE id = $1::bigint) e LEFT JOIN (" from           \
    ") x ON true"
#define LISTED(member, item, order)                                                                \
    "'\"" member "\":[' || coalesce(string_agg(" item ", ',' ORDER BY " order "), '') || ']'"

/* Nobody may have reported there any more: is there one? */
#define IS_STILL_THERE                                                                             \
    "EXISTS (SELECT 1 FROM trials t CROSS JOIN LATERAL (SELECT 1 FROM " REPORTS                    \
    "AND m.steps = k.steps LIMIT 1) m WHERE t.experiment_id = $1::bigint)"

/* Those of them that are in no chunk yet: each other's steps are in metric_steps. */
#define TAIL_REPORTS                                                                               \
    HEADS_OF("$1::bigint", "grp = $2")                                                             \
    ", LATERAL (SELECT steps, id FROM " REPORTS                                                    \
    "AND m.steps > h.closed_steps AND m.id > $4::bigint OFFSET 0) m"

void db_metric_batches(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg)
{
    db_query_chart(
        db,
        NEWS("'{' || " LISTED("batches", "x.steps::text", "x.steps") " || '}'", "NULL",
             "SELECT steps, max(id) newest FROM (SELECT k.steps, k.id FROM metric_steps k "
             "WHERE k.experiment_id = $1::bigint AND k.grp = $2 AND k.id > $4::bigint "
             "AND k.steps BETWEEN $5::bigint AND $6::bigint AND k.names @> ARRAY[$3::text] "
             "AND (NOT k.doubtful OR " IS_STILL_THERE ") "
             "UNION ALL SELECT m.steps, m.id FROM " TAIL_REPORTS ") s GROUP BY steps"),
        news_args(DB_ARGS, n), cb, arg);
}

/* Whether any trial may have reported there, but for what is in a tail: else none is asked. */
#define HAS_STEPS                                                                                  \
    "EXISTS (SELECT 1 FROM metric_steps k WHERE k.experiment_id = $1::bigint AND k.grp = $2 "      \
    "AND k.steps BETWEEN $5::bigint AND $6::bigint AND k.names @> ARRAY[$3::text])"

/* The last report of each trial within [$5, $6]: its number, value and steps. */
#define LAST_OF_TRIALS                                                                             \
    "LATERAL (SELECT m.steps, " VALUE " AS value, m.id newest FROM " REPORTS                       \
    "ORDER BY m.steps DESC LIMIT 1) m"
/* A line each, by trial: its id, the report's, and what is told of it. */
#define SNAPSHOT_LINES                                                                             \
    "coalesce(string_agg(x.id || ' ' || x.newest || ' {\"trialId\":' || x.id || ',\"hparams\":' "  \
    "|| x.hparams || ',\"metric\":' || x.value || ',\"batchesProcessed\":' || x.steps || '}', "    \
    "E'\\n' ORDER BY x.id), '')"

void db_metric_snapshot_settled(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg)
{
    struct db_metric_news all = *n;
    all.since = 0;
    db_query_chart_lasting(
        db, DB_RESTS_STATE,
        "SELECT (" OPEN_IDS "), coalesce(max(x.newest), 0), " SNAPSHOT_LINES
        " FROM (SELECT t.id, t.hparams, m.steps, m.value, m.newest FROM trials t CROSS "
        "JOIN " LAST_OF_TRIALS " WHERE t.experiment_id = $1::bigint AND NOT " MAY_HAVE_TAIL
        " AND m.newest > $4::bigint AND " HAS_STEPS ") x",
        news_args(DB_ARGS, &all), cb, arg);
}

void db_metric_snapshot(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg)
{
    db_query_chart(db,
                   NEWS(SNAPSHOT_LINES, "NULL",
                        "SELECT t.id, t.hparams, m.steps, m.value, m.newest FROM " OPEN_TRIALS(
                            "$7") " CROSS JOIN " LAST_OF_TRIALS " WHERE m.newest > $4::bigint"),
                   db_str_arg(news_args(DB_ARGS, n), n->open), cb, arg);
}

/* Reports of a trial that was shown before, as series_lines() has them. */
#define NEW_ITEMS                                                                                  \
    "SELECT string_agg(i.item, E'\\n') FROM (SELECT point_text(" VALUE                             \
    ", m.steps, m.end_time) item "                                                                 \
    "FROM " REPORTS "AND m.id > $4::bigint ORDER BY m.steps) i"
/* The newest of one that is new to the sample is what stands last: to look at all takes as long as
 * to draw them. */
#define NEWEST                                                                                     \
    "CASE WHEN t.is_new THEN (SELECT m.id FROM " REPORTS "ORDER BY m.steps DESC LIMIT 1) "         \
    "ELSE (SELECT max(m.id) FROM " REPORTS "AND m.id > $4::bigint) END"

/* How good trial t of experiment e is: the lowest is the best. */
#define RANK                                                                                       \
    "CASE WHEN (SELECT is_halving FROM e) THEN -trial_batches(t.id) "                              \
    "WHEN (SELECT smaller_is_better FROM e) THEN (t.s->>'min')::float8 "                           \
    "ELSE -(t.s->>'max')::float8 END"
#define RANKED_EXPERIMENT                                                                          \
    "e AS MATERIALIZED (SELECT id, state, smaller_is_better, config#>>'{searcher,name}' IN "       \
    "('async_halving', 'adaptive_asha', 'sync_halving', 'adaptive', 'adaptive_simple') "           \
    "is_halving "                                                                                  \
    "FROM experiments WHERE id = $1::bigint)"
#define SETTLED_SUMMARY "t.summary_metrics->(SELECT summary_key($2))->$3::text"

void db_metric_sample_settled(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_i64_arg(DB_ARGS, n->exp_id), n->group);
    db_query_chart_lasting(
        db, DB_RESTS_STATE,
        "WITH " RANKED_EXPERIMENT ", best AS (SELECT t.id FROM (SELECT t.id, " SETTLED_SUMMARY
        " s FROM trials t WHERE t.experiment_id = $1::bigint AND NOT " MAY_HAVE_TAIL
        " OFFSET 0) t WHERE t.s->>'type' = 'number' ORDER BY " RANK ", t.id LIMIT $4::bigint) "
        "SELECT (" OPEN_IDS ") || (SELECT coalesce(jsonb_agg(id), '[]') FROM best), 0, NULL",
        db_i64_arg(db_str_arg(a, n->name), n->trials), cb, arg);
}

/* $7 trials, $8 points, $9 shown, $10 open. A trial new to the sample comes with all its points, or
 * in chunks where these are half as many as would be drawn: there are many lines in one chart. */
void db_metric_sample(struct db *db, const struct db_metric_news *n, db_cb *cb, void *arg)
{
    struct db_args *a = news_args(DB_ARGS, n);
    db_str_arg(db_i64_arg(db_i64_arg(a, n->trials), n->points), n->shown);
    db_query_chart(
        db,
        "WITH " RANKED_EXPERIMENT ", "
        "best AS MATERIALIZED (SELECT t.id, t.hparams, NOT $9::jsonb @> to_jsonb(t.id) AS is_new "
        "FROM (SELECT t.id, t.hparams, CASE WHEN " MAY_HAVE_TAIL " THEN "
        "metric_summary(t.id, t.summary_metrics, $2, $3) ELSE " SETTLED_SUMMARY
        " END s FROM " OPEN_TRIALS(
            "$10") " OFFSET 0) t "
                   "WHERE t.s->>'type' = 'number' ORDER BY " RANK ", t.id LIMIT $7::bigint), "
                   "n AS (SELECT coalesce(jsonb_agg(id ORDER BY id), '[]') ids, "
                   "coalesce(jsonb_agg(id ORDER BY id) FILTER (WHERE is_new), '[]') promoted, "
                   "(SELECT coalesce(jsonb_agg(s), '[]') FROM jsonb_array_elements($9::jsonb) s "
                   "WHERE s NOT IN (SELECT to_jsonb(id) FROM best)) demoted FROM best), "
                   "x AS (SELECT t.id, t.hparams, CASE WHEN t.is_new THEN series_lines(t.id, $2, "
                   "$5::bigint::integer, $6::bigint::integer, $3, "
                   "($8::bigint - 2) / 4 + 2, true) ELSE (" NEW_ITEMS ") END items, " NEWEST
                   " newest FROM best t) "
                   "SELECT CASE WHEN e.id IS NOT NULL THEN '\"promotedTrials\":' || n.promoted::text || "
                   "',\"demotedTrials\":' || n.demoted::text || '}' END, is_terminal(e.state), "
                   "coalesce(max(x.newest) OVER (), 0), n.ids, x.id, x.hparams, x.items "
                   "FROM n LEFT JOIN e ON true "
                   "LEFT JOIN x ON true ORDER BY x.id",
        db_str_arg(a, n->open), cb, arg);
}
