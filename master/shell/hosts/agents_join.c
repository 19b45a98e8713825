#include "agents_join.h"

#include "agentlink.h"
#include "auth.h"
#include "clk.h"
#include "db_audit.h"
#include "db_joins.h"
#include "hash.h"
#include "join.h"
#include "joins.h"
#include "json.h"
#include "log.h"
#include "masterconf.h"
#include "shell.h"
#include "transport.h"

#include <stdio.h>
#include <string.h>

struct call {
    struct http_req *req;
    const char *request; /* what is to be signed */
    char token[HASH_HEX_MAX], key[65];
    struct agent_cert cert;
    int64_t audit_n;
};

static int64_t begin_audit(struct http_req *req, const char *agent_id, const char *operation)
{
    char *address = http_mem(req, HTTP_ADDRESS_MAX), name[80];
    snprintf(name, sizeof name, "agent %s", agent_id); /* no user's: theirs have no spaces */
    struct db_audit_row row = {.n = (int64_t)++req->sh->counts.audited,
                               .username = name,
                               .address = http_address(req, address),
                               .operation = operation,
                               .method = "POST",
                               .path = req->path};
    db_audit_write(req->sh->db, &row, NULL, NULL);
    return row.n;
}

static void end_audit(struct call *c, int status)
{
    db_audit_answered(c->req->sh->db, c->audit_n, status, NULL, NULL);
    buf_finish(&c->cert.pem);
}

static void reply_certificate(struct call *c)
{
    struct http_req *req = c->req;
    det_cleanup(buf_finish) struct buf chain = BUF_INIT;
    transport_authority(req->sh->transport, &chain);
    JSON_OWN j =
        json_make("{s:s, s:s}", "certificate", buf_str(&c->cert.pem), "authority", buf_str(&chain));
    det_cleanup(freep) char *text = json_text(j);
    end_audit(c, 200);
    http_reply(req, 200, text);
}

static int issue_certificate(struct call *c, struct det_err *err)
{
    struct shell *sh = c->req->sh;
    struct cert_dates d =
        cert_dates_of(clk_wall_us() / 1000000, sh->conf->agent_certificate_ms / 1000);
    c->cert.from_s = d.from_s;
    c->cert.until_s = d.until_s;
    return authority_issue_agent(joins_authority(sh->joins), c->request, &c->cert, err);
}

static struct db_join row_of(const struct call *c)
{
    return (struct db_join){.token_sha256 = c->token,
                            .agent_id = c->cert.name,
                            .key = c->key,
                            .fingerprint = c->cert.fingerprint,
                            .from_us = c->cert.from_s * 1000000,
                            .until_us = c->cert.until_s * 1000000};
}

/* ---- joining ---- */

static const char *const why_not[JOIN_VERDICT_COUNT] = {
    [JOIN_UNKNOWN] = "the master does not know this join token: copy it whole, or make a new one "
                     "(det agent join-token)",
    [JOIN_USED] =
        "this join token has been used by another: if that was not you, revoke that agent "
        "(det agent list, det agent revoke NAME); det agent join-token makes a new one",
    [JOIN_EXPIRED] = "this join token has expired: det agent join-token makes a new one",
    [JOIN_OTHER] = "this join token is for an agent of another name: start det-agent with that "
                   "--id, or make one for this name (det agent join-token NAME)",
    [JOIN_JOINED] =
        "an agent of this name has joined already: choose another --id, or let this one "
        "take its place with a token for this name (det agent join-token NAME)",
};

static void refuse_token(struct http_req *req, const char *name, int64_t verdict)
{
    char address[HTTP_ADDRESS_MAX];
    auth_note(req->sh->auth, "a join token at agent", name, http_address(req, address));
    http_fail(req, DET_EAUTH, "%s", why_not[verdict]);
}

static void on_joined(void *arg, const struct db_result *r)
{
    struct call *c = arg;
    if (db_rc(r) < 0) {
        end_audit(c, http_status_of(db_rc(r), NULL, NULL));
        http_fail_err(c->req, db_error(r));
    } else if (db_i64(r, 0, 0) != JOIN_OK) {
        end_audit(c, http_status_of(DET_EAUTH, NULL, NULL));
        refuse_token(c->req, c->cert.name, db_i64(r, 0, 0));
    } else {
        joins_on_join(c->req->sh->joins, &c->cert);
        log_info("agent %s has joined, and has a certificate of its own", c->cert.name);
        reply_certificate(c);
    }
}

static void on_look(void *arg, const struct db_result *r)
{
    struct call *c = arg;
    struct det_err err;
    if (db_rc(r) < 0) {
        http_fail_err(c->req, db_error(r));
    } else if (db_i64(r, 0, 0) != JOIN_OK) {
        refuse_token(c->req, c->cert.name, db_i64(r, 0, 0));
    } else if (issue_certificate(c, &err) < 0) {
        http_fail_err(c->req, &err);
    } else {
        struct db_join j = row_of(c);
        c->audit_n = begin_audit(c->req, c->cert.name, "agent_join");
        db_join(c->req->sh->db, &j, on_joined, c);
    }
}

/* NULL: answered. */
static struct call *begin_call(struct shell *sh, struct http_req *req, const char **ret_token)
{
    struct det_err err = {0};
    const char *id = http_param(req, "agent");
    if (!link_id_is_valid(id) || strlen(id) > 64) {
        http_fail(req, DET_EINVAL, "agent id: letters, digits, '.', '_' and '-', at most 64");
        return NULL;
    }
    if (!joins_authority(sh->joins)) {
        http_fail(req, DET_ESTATE,
                  "this master serves plain HTTP, where no certificate counts: set "
                  "security.tls.own (--tls-own)");
        return NULL;
    }
    JSON_OWN body = json_parse(buf_str(&req->body), req->body.len, &err);
    const char *request = json_str(body, "request", NULL), *token = json_str(body, "token", NULL);
    if (!json_is_object(body) || !request || (ret_token && !token)) {
        http_fail(req, DET_EINVAL, "%s",
                  err.text[0] ? err.text : "expected {\"token\": text, \"request\": PEM}");
        return NULL;
    }
    struct call *c = http_mem(req, sizeof *c);
    *c = (struct call){.req = req, .request = http_strdup(req, request), .cert = {.name = id}};
    if (ret_token)
        *ret_token = http_strdup(req, token);
    return c;
}

static void on_join(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    const char *token;
    struct call *c = begin_call(sh, req, &token);
    if (!c)
        return;
    if (authority_key_of(c->request, c->key, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    hash_bytes(HASH_SHA256, token, strlen(token), c->token);
    struct db_join j = row_of(c);
    db_join_look(sh->db, &j, on_look, c);
}

/* ---- renewal ---- */

static void on_renewed(void *arg, const struct db_result *r)
{
    struct call *c = arg;
    struct det_err err = {0};
    const char *id = c->cert.name;
    if (db_rc(r) == 0 && db_affected(r) == 0)
        det_fail(&err, DET_EAUTH, "agent %s was revoked meanwhile", id);
    else if (db_rc(r) < 0)
        err = *db_error(r);
    if (db_rc(r) < 0 || db_affected(r) == 0) {
        end_audit(c, http_status_of(err.code, NULL, NULL));
        http_fail_err(c->req, &err);
        return;
    }
    joins_on_renewal(c->req->sh->joins, &c->cert);
    log_info("agent %s has a new certificate", id);
    reply_certificate(c);
}

static void on_renewal(struct shell *sh, struct http_req *req)
{
    struct det_err err;
    if (!*req->who.agent_id) {
        http_fail(req, DET_EPERM,
                  "only a certificate can be renewed: join first (det agent "
                  "join-token, det-agent --join-token)");
        return;
    }
    struct call *c = begin_call(sh, req, NULL);
    if (!c)
        return;
    if (issue_certificate(c, &err) < 0) {
        http_fail_err(req, &err);
        return;
    }
    struct db_join j = row_of(c);
    c->audit_n = begin_audit(req, c->cert.name, "agent_certificate");
    db_join_renew(sh->db, &j, on_renewed, c);
}

const struct http_route agents_join_routes[] = {
    {HTTP_POST, "/agent/v1/{agent}/join", HTTP_AUTH_NONE, on_join, JOIN_BODY_MAX},
    {HTTP_POST, "/agent/v1/{agent}/certificate", HTTP_AUTH_AGENT, on_renewal, JOIN_BODY_MAX},
};
const size_t agents_join_routes_n = DET_ARRAY_LEN(agents_join_routes);
