/* Whom agents' certificates are given to and taken from (proto/agent.md, "Joining"). The token
 * itself is answered once; the database keeps its digest. */
#include "agentlink.h"
#include "agents.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_joins.h"
#include "driver.h"
#include "hash.h"
#include "join.h"
#include "joins.h"
#include "shell.h"
#include "transport.h"
#include "uuid.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LIFE_S = 15 * 60, LIFE_MAX_S = 24 * 3600 };

struct token_call {
    struct http_req *req;
    struct join_token token;
    const char *agent_id; /* NULL: any */
};

static void on_token(void *arg, const struct db_result *r)
{
    struct token_call *c = arg;
    char text[JOIN_TOKEN_MAX];
    if (api_failed(c->req, r))
        return;
    join_token_write(&c->token, text);
    api_reply_json(c->req, json_make("{s:s, s:s, s:s}", "token", text, "expiry", db_text(r, 0, 0),
                                     "agentId", c->agent_id ? c->agent_id : ""));
}

static void make_token(struct shell *sh, struct http_req *req, const char *agent_id, int64_t life_s)
{
    struct token_call *c = http_mem(req, sizeof *c);
    char digest[HASH_HEX_MAX];
    *c = (struct token_call){.req = req, .agent_id = agent_id ? http_strdup(req, agent_id) : NULL};
    random_hex(c->token.secret, JOIN_DIGITS / 2);
    snprintf(c->token.fingerprint, sizeof c->token.fingerprint, "%s", sh->transport->print);
    hash_bytes(HASH_SHA256, c->token.secret, strlen(c->token.secret), digest);
    db_join_token_create(sh->db, digest, c->agent_id, life_s, on_token, c);
}

struct token_body {
    const char *agent_id;
    int64_t life_s;
};
static const struct wire_field token_fields[] = {
    {"agentId", WIRE_STR, offsetof(struct token_body, agent_id), 0, NULL},
    {"lifespanSeconds", WIRE_I32, offsetof(struct token_body, life_s), 0, NULL},
};

void api_post_join_token(struct shell *sh, struct http_req *req)
{
    struct token_body b = {.life_s = LIFE_S};
    json_t *given;
    if (!api_decode(req, token_fields, DET_ARRAY_LEN(token_fields), &b, &given))
        return;
    JSON_OWN body = given;
    const char *id = b.agent_id && *b.agent_id ? b.agent_id : NULL;
    if (!joins_authority(sh->joins))
        http_fail(req, DET_ESTATE,
                  "this master serves plain HTTP, where no agent can show a certificate: set "
                  "security.tls.own (--tls-own), or let agents use the token that all share "
                  "(--token-file)");
    else if (id && (!link_id_is_valid(id) || strlen(id) > 64))
        http_fail(req, DET_EINVAL,
                  "agentId: letters, digits, '.', '_' and '-', at most 64, as det-agent's --id");
    else if (b.life_s < 1 || b.life_s > LIFE_MAX_S)
        http_fail(req, DET_EINVAL, "lifespanSeconds: %" PRId64 "; expected 1 to %d", b.life_s,
                  LIFE_MAX_S);
    else
        make_token(sh, req, id, b.life_s);
}

static void on_revoked(void *arg, const struct db_result *r)
{
    struct http_req *req = arg;
    const char *id = http_param(req, "agentId");
    if (api_failed(req, r))
        return;
    joins_on_revoke(req->sh->joins, id);
    agents_drop(req->sh->agents, id);
    api_reply_json(req, json_object());
}

void api_revoke_agent(struct shell *sh, struct http_req *req)
{
    const char *id = http_param(req, "agentId");
    struct core_agent_view a;
    if (!joins_authority(sh->joins)) /* it could not join anew either */
        http_fail(req, DET_ESTATE,
                  "over plain HTTP every agent comes with the token that all share, and under any "
                  "name: set security.tls.own (--tls-own), and let agents join (det agent "
                  "join-token)");
    else if (joins_knows(sh->joins, id) || core_agent_get(api_core(sh), id, &a))
        db_join_revoke(sh->db, id, on_revoked, req);
    else
        http_fail(req, DET_ENOENT, "agent \"%.100s\" not found", id);
}
