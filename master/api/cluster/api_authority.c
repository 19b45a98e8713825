/* A new authority in the place of the cluster's own. The key of the one before ends with it: after
 * it has vouched for its successor there is nothing that it may sign. */
#include "api_handlers.h"
#include "api_util.h"
#include "joins.h"
#include "log.h"
#include "shell.h"
#include "transport.h"

#include <string.h>

struct rotation {
    struct http_req *req;
    struct pem_pair next;
    char former[FINGERPRINT_MAX];
};

static void copy_text(struct buf *to, const struct db_result *r, int col)
{
    buf_add_str(to, db_text(r, 0, col));
}

/* Served from here on; whoever's rotation it was. */
static int serve_authority(struct rotation *o, const struct db_result *r, struct det_err *err)
{
    struct shell *sh = o->req->sh;
    struct db_authority a = {0};
    copy_text(&a.cert, r, AUTHORITY_CERT);
    copy_text(&a.key, r, AUTHORITY_KEY);
    copy_text(&a.vouches, r, AUTHORITY_VOUCHES);
    copy_text(&a.formers, r, AUTHORITY_FORMERS);
    bool is_ours = strcmp(buf_str(&a.cert), buf_str(&o->next.cert)) == 0;
    int rc = transport_take(sh->transport, sh->http, &a, err);
    if (rc == 0 && !is_ours)
        rc = det_fail(err, DET_ESTALE,
                      "the authority was rotated by somebody else at this moment; that one is "
                      "served now");
    return rc;
}

static void on_replaced(void *arg, const struct db_result *r)
{
    struct rotation *o = arg;
    char print[FINGERPRINT_MAX] = "";
    struct det_err err;
    if (api_failed(o->req, r)) {
        pem_pair_finish(&o->next);
        return;
    }
    int rc = serve_authority(o, r, &err);
    if (rc == 0)
        rc = authority_fingerprint(buf_str(&o->next.cert), print, &err);
    pem_pair_finish(&o->next);
    if (rc < 0) {
        http_fail_err(o->req, &err);
        return;
    }
    log_info("the cluster's authority was rotated by %s: it was %s, and vouches for %s",
             o->req->who.username, o->former, print);
    api_reply_json(o->req, json_make("{s:s, s:s}", "fingerprint", print, "former", o->former));
}

static int begin_rotation(struct rotation *o, const struct pem_pair *now, struct buf *vouch,
                          struct det_err *err)
{
    int rc = authority_fingerprint(buf_str(&now->cert), o->former, err);
    return rc == 0 ? authority_succeed(now, &o->next, vouch, err) : rc;
}

void api_rotate_authority(struct shell *sh, struct http_req *req)
{
    const struct pem_pair *now = joins_authority(sh->joins);
    det_cleanup(buf_finish) struct buf vouch = BUF_INIT;
    struct det_err err;
    if (!now) {
        http_fail(req, DET_ESTATE,
                  "this master serves plain HTTP, and has no authority of its own: "
                  "set security.tls.own (--tls-own)");
        return;
    }
    struct rotation *o = http_mem(req, sizeof *o);
    o->req = req;
    if (begin_rotation(o, now, &vouch, &err) < 0) {
        pem_pair_finish(&o->next);
        http_fail_err(req, &err);
        return;
    }
    struct db_succession s = {.old = buf_str(&now->cert),
                              .cert = buf_str(&o->next.cert),
                              .key = buf_str(&o->next.key),
                              .vouch = buf_str(&vouch)};
    db_authority_replace(sh->db, &s, on_replaced, o);
}
