#include "db_series.h"

void db_series_read(struct db *db, const struct db_series *s, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(a, s->trial_ids), s->groups);
    db_i64_arg(db_i64_arg(db_i64_arg(a, s->from), s->to), s->buckets);
    db_query(db,
             "SELECT t.ord, g.ord, s.name, s.low, s.high "
             "FROM jsonb_array_elements_text($1::jsonb) WITH ORDINALITY t(id, ord), "
             "jsonb_array_elements($2::jsonb) WITH ORDINALITY g(doc, ord), "
             "LATERAL series_items(t.id::integer, g.doc->>'group', $3::integer, $4::integer, "
             "ARRAY(SELECT jsonb_array_elements_text(g.doc->'names')), $5::bigint) "
             "WITH ORDINALITY s(name, low, high, ord) ORDER BY t.ord, g.ord, s.name, s.ord",
             a, cb, arg);
}

void db_series_trials(struct db *db, const char *trial_ids, db_cb *cb, void *arg)
{
    db_query(db,
             "WITH x AS (SELECT id::integer, ord FROM jsonb_array_elements_text($1::jsonb) "
             "WITH ORDINALITY x(id, ord)) SELECT t.id, t.state, d.doc FROM x JOIN trials t "
             "ON t.id = x.id JOIN trial_docs(ARRAY(SELECT id FROM x)) d ON d.doc_id = t.id "
             "ORDER BY x.ord",
             db_str_arg(DB_ARGS, trial_ids), cb, arg);
}
