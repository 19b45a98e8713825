#include "trial_said.h"

static int64_t trial_of(void *arg, const char *request_id)
{
    const struct exp *e = arg;
    const struct trial *t = map_get(e->by_request, request_id);
    return t ? t->id : 0;
}

struct search_names exp_search_names(const struct exp *e)
{
    return (struct search_names){.metric =
                                     json_str(json_obj(e->config, "searcher"), "metric", "metric"),
                                 .unit = e->conf.unit,
                                 .trial = trial_of,
                                 .arg = (void *)e};
}

/* Of searches that compare nothing. */
static void said_plainly(const struct trial *t, struct buf *out)
{
    bool is_custom = t->exp->conf.search.kind == SEARCH_CUSTOM;
    if (!t->closed)
        buf_addf(out, "it has done what was asked of it; %s decides what comes next",
                 is_custom ? "the client of its search" : "the searcher");
    else
        search_plain_text(t->exp->conf.search.kind, t->op_last, t->exp->conf.unit, t->closed_for,
                          out);
}

void trial_said(const struct trial *t, struct buf *out)
{
    struct search_place p;
    struct search_names names = exp_search_names(t->exp);
    if (t->exp->search && search_place_of(t->exp->search, t->request_id, &p) &&
        p.stand != SEARCH_TRAINS)
        search_place_text(&p, &names, out);
    else
        said_plainly(t, out);
}
