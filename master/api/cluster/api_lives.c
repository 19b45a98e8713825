/* Lives of the cluster: where this database comes from, who is refused, what is kept aside. */
#include "api_handlers.h"
#include "api_util.h"
#include "db_lives.h"
#include "lives.h"
#include "shell.h"

struct lives_call {
    struct shell *sh;
    struct http_req *req;
};

static void on_lives(void *arg, const struct db_result *r)
{
    struct lives_call *c = arg;
    if (api_failed(c->req, r))
        return;
    json_t *past = json_parse(db_text(r, 0, 0), db_text_len(r, 0, 0), NULL);
    api_reply_json(c->req, json_make("{s:s, s:o, s:o}", "clusterId", c->sh->cluster_id, "lives",
                                     past, "refused", lives_refused(c->sh->lives)));
}

void api_get_lives(struct shell *sh, struct http_req *req)
{
    struct lives_call *c = http_mem(req, sizeof *c);
    *c = (struct lives_call){sh, req};
    db_lives_list(sh->db, on_lives, c);
}

void api_get_strays(struct shell *sh, struct http_req *req)
{
    int64_t limit;
    if (!api_query_i64(req, "limit", 100, &limit))
        return;
    if (limit < 1 || limit > 1000)
        http_fail(req, DET_EINVAL, "limit: %lld; expected 1 to 1000", (long long)limit);
    else
        db_strays(sh->db, limit, api_reply_doc, req);
}

void api_delete_strays(struct shell *sh, struct http_req *req)
{
    db_strays_drop(sh->db, http_query(req, "allocationId"), api_reply_doc, req);
}
