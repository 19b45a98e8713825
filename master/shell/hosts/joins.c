#include "joins.h"

#include "clk.h"
#include "db_joins.h"
#include "join.h"
#include "map.h"
#include "masterconf.h"
#include "mem.h"
#include "shell.h"
#include "transport.h"
#include "vec.h"

#include <string.h>

#define AGAIN "det agent join-token %s makes a token for it to join anew (det-agent --join-token)"

struct member {
    char *id;
    bool is_revoked;
    int64_t until_s; /* of the certificate that lasts longest; 0: there is none */
};
struct cert {
    struct member *holder;
    struct cert_dates dates;
};
struct joins {
    struct shell *sh;
    struct map *members, *certs; /* by name; by fingerprint */
};

static struct member *member_of(struct joins *j, const char *id)
{
    struct member *m = map_get(j->members, id);
    if (m)
        return m;
    m = det_zalloc(sizeof *m);
    m->id = det_strdup(id);
    map_put(j->members, id, m);
    return m;
}

static void add_cert(struct joins *j, struct member *holder, const char *print,
                     struct cert_dates dates)
{
    struct cert *c = det_zalloc(sizeof *c);
    *c = (struct cert){holder, dates};
    free(map_put(j->certs, print, c));
    if (dates.until_s > holder->until_s)
        holder->until_s = dates.until_s;
}

static void on_rows(void *arg, const struct db_result *r)
{
    struct joins *j = arg;
    for (int i = 0; i < db_rows(r); i++) {
        struct member *m = member_of(j, db_text(r, i, JOIN_AGENT));
        m->is_revoked = db_bool(r, i, JOIN_REVOKED);
        if (!db_is_null(r, i, JOIN_PRINT))
            add_cert(j, m, db_text(r, i, JOIN_PRINT),
                     (struct cert_dates){db_i64(r, i, JOIN_FROM_S), db_i64(r, i, JOIN_UNTIL_S)});
    }
}

int joins_open(struct shell *sh, struct joins **ret, struct det_err *err)
{
    struct joins *j = det_zalloc(sizeof *j);
    *j = (struct joins){.sh = sh, .members = map_create(), .certs = map_create()};
    *ret = j;
    return db_joins_read(sh->db, on_rows, j, err);
}

void joins_destroy(struct joins *j)
{
    const char *key;
    void *v;
    if (!j)
        return;
    for (size_t it = 0; map_next(j->certs, &it, &key, &v);)
        free(v);
    for (size_t it = 0; map_next(j->members, &it, &key, &v);) {
        free(((struct member *)v)->id);
        free(v);
    }
    map_destroy(j->certs);
    map_destroy(j->members);
    free(j);
}

const struct pem_pair *joins_authority(const struct joins *j)
{
    const struct pem_pair *ca = &j->sh->transport->ca;
    return ca->cert.len ? ca : NULL;
}

bool joins_knows(const struct joins *j, const char *agent_id)
{
    return map_get(j->members, agent_id) != NULL;
}

static struct join_view view_of(const struct member *m)
{
    struct cert_dates d = {.until_s = m->until_s};
    return (struct join_view){.agent_id = m->id,
                              .state = cert_state(&d, m->is_revoked, clk_wall_us() / 1000000),
                              .until_s = d.until_s};
}

bool joins_get(const struct joins *j, const char *agent_id, struct join_view *ret)
{
    const struct member *m = map_get(j->members, agent_id);
    if (m)
        *ret = view_of(m);
    return m != NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct join_view *)a)->agent_id, ((const struct join_view *)b)->agent_id);
}

size_t joins_all(const struct joins *j, struct join_view **ret)
{
    VEC(struct join_view) all = {0};
    const char *key;
    void *v;
    for (size_t it = 0; map_next(j->members, &it, &key, &v);)
        vec_push(&all, view_of(v));
    if (all.n)
        qsort(all.v, all.n, sizeof *all.v, by_name);
    *ret = all.v;
    return all.n;
}

int joins_holder(const struct joins *j, const char *fingerprint, const char **ret_agent,
                 struct det_err *err)
{
    const struct cert *c = map_get(j->certs, fingerprint);
    if (!c)
        return det_fail(err, DET_EAUTH,
                        "this cluster does not know the certificate of this agent: another has "
                        "taken its place, or it is another cluster's; det agent join-token makes a "
                        "token to join anew");
    const char *id = *ret_agent = c->holder->id;
    switch (cert_state(&c->dates, c->holder->is_revoked, clk_wall_us() / 1000000)) {
    case CERT_REVOKED:
        return det_fail(err, DET_EAUTH, "agent %s was revoked (det agent revoke): " AGAIN, id, id);
    case CERT_EXPIRED:
        return det_fail(err, DET_EAUTH, "the certificate of agent %s has expired: " AGAIN, id, id);
    case CERT_EARLY: /* the clock here went back */
    case CERT_FRESH:
    case CERT_DUE: break;
    }
    return 0;
}

int joins_may_share(const struct joins *j, const char *agent_id, struct det_err *err)
{
    const struct member *m = map_get(j->members, agent_id);
    if (m && m->is_revoked)
        return det_fail(err, DET_EAUTH, "agent %s was revoked (det agent revoke): " AGAIN, agent_id,
                        agent_id);
    if (m)
        return det_fail(err, DET_EAUTH,
                        "agent %s has a certificate of its own, and comes with that only: start it "
                        "in the work directory that has it; or " AGAIN,
                        agent_id, agent_id);
    if (j->sh->conf->agents_certificates_only)
        return det_fail(err, DET_EAUTH,
                        "agents come with certificates of their own only, as the master's setting "
                        "security.agents.certificates_only says: " AGAIN,
                        agent_id);
    return 0;
}

static struct cert_dates dates_of(const struct agent_cert *c)
{
    return (struct cert_dates){c->from_s, c->until_s};
}

/* Those that stay when all is false: that have not ended. */
static void drop_certs(struct joins *j, const struct member *holder, bool all)
{
    VEC(char *) prints = {0};
    const char *key;
    void *v;
    int64_t now_s = clk_wall_us() / 1000000;
    for (size_t it = 0; map_next(j->certs, &it, &key, &v);) {
        const struct cert *c = v;
        if (c->holder == holder && (all || cert_state(&c->dates, false, now_s) == CERT_EXPIRED))
            vec_push(&prints, det_strdup(key));
    }
    for (size_t i = 0; i < prints.n; i++) {
        free(map_del(j->certs, prints.v[i]));
        free(prints.v[i]);
    }
    vec_free(&prints);
}

void joins_on_join(struct joins *j, const struct agent_cert *c)
{
    struct member *m = member_of(j, c->name);
    m->is_revoked = false;
    m->until_s = 0;
    drop_certs(j, m, true);
    add_cert(j, m, c->fingerprint, dates_of(c));
}

void joins_on_renewal(struct joins *j, const struct agent_cert *c)
{
    struct member *m = member_of(j, c->name);
    drop_certs(j, m, false);
    add_cert(j, m, c->fingerprint, dates_of(c));
}

void joins_on_revoke(struct joins *j, const char *agent_id)
{
    member_of(j, agent_id)->is_revoked = true;
}
