#include "trust.h"

#include "pem.h"
#include "pins.h"
#include "succession.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* DET_EAUTH: TLS does not believe the certificate. What is answered is the next call's matter. */
static int try_out(struct client *c, struct det_err *err)
{
    det_cleanup(client_resp_finish) struct client_resp r = CLIENT_RESP_INIT;
    const struct client_req q = {.path = "/healthz"};
    int rc = client_call(c, &q, &r, err);
    return r.status ? 0 : rc;
}

/* In place of *c, which may be NULL: a client that believes this authority only. */
static int believe_authority(const struct client_options *o, const char *pem, struct client **c,
                             struct det_err *err)
{
    struct client_options only = *o;
    only.authority = pem;
    client_destroy(*c);
    *c = NULL;
    return client_create(&only, c, err);
}

/* The authority is believed for this connection, and kept where the connection stands. */
static int settle_authority(const struct client_options *o, const char *pem, struct client **c,
                            struct det_err *err)
{
    int rc = believe_authority(o, pem, c, err);
    if (rc == 0)
        rc = try_out(*c, err);
    if (rc == DET_EAUTH)
        return det_wrap(err, rc,
                        "%s sends the certificate of this authority, but its own was not issued by "
                        "it, or not for this name (DET_MASTER_CERT_NAME says another one); "
                        "nothing was sent, and nothing is kept",
                        client_url(*c));
    return rc < 0 ? rc : pins_put(client_url(*c), pem, err);
}

static int refuse_unknown(const char *url, const char *shown, struct det_err *err)
{
    return det_fail(err, DET_EAUTH,
                    "no authority of this system has signed the certificate of %s: its authority "
                    "is\n  %s\nNothing was sent. If the master's log says the same, trust it with  "
                    "det user login NAME --fingerprint %s  or name a file with the authority's "
                    "certificate as DET_MASTER_CERT_FILE",
                    url, shown, shown);
}

static int first_use(const struct client_options *o, const char *chain, struct client **c,
                     struct det_err *err)
{
    char shown[FINGERPRINT_MAX], answer[16] = "";
    char *pem det_cleanup(freep) = pem_last(chain);
    int rc = pem_fingerprint(pem ? pem : "", shown, err);
    if (rc < 0)
        return rc;
    if (!isatty(STDIN_FILENO))
        return refuse_unknown(client_url(*c), shown, err);
    fprintf(stderr,
            "No authority of this system has signed the certificate of %s. Its authority is\n"
            "  %s\n"
            "The master's log says which one it should be. Trust it from now on? [y/N] ",
            client_url(*c), shown);
    if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
        return det_fail(err, DET_EAUTH, "%s is not trusted; nothing was sent", client_url(*c));
    return settle_authority(o, pem, c, err);
}

/* Only another authority is told as one: the certificate may have another fault. */
static int tell_changed(const char *url, const char *kept, const char *chain, struct det_err *err)
{
    char old[FINGERPRINT_MAX] = "", now[FINGERPRINT_MAX] = "";
    char *last det_cleanup(freep) = pem_last(chain);
    int rc = pem_fingerprint(kept, old, err);
    if (rc == 0)
        rc = pem_fingerprint(last ? last : "", now, err);
    char *same det_cleanup(freep) = rc == 0 ? pem_find(chain, old) : NULL;
    char *path det_cleanup(freep) = pins_path();
    if (rc < 0)
        return det_wrap(err, rc, "%s", path);
    if (same)
        return det_wrap(err, DET_EAUTH,
                        "%s sends the authority that is trusted, but its own certificate was not "
                        "issued by it, or not for this name (DET_MASTER_CERT_NAME says another "
                        "one); nothing was sent",
                        url);
    return det_fail(err, DET_EAUTH,
                    "THE AUTHORITY OF %s HAS CHANGED. Somebody may stand between you and the "
                    "master, and nothing was sent.\n  it was  %s\n  it is   %s\nAsk the "
                    "administrator, or look in the master's log: if it says the new one, trust "
                    "it with  det user login NAME --fingerprint %s  (it is kept in %s)",
                    url, old, now, now, path);
}

static int check_given(const struct client_options *o, const char *fingerprint, struct client **c,
                       struct det_err *err)
{
    char want[FINGERPRINT_MAX], shown[FINGERPRINT_MAX] = "";
    det_cleanup(buf_finish) struct buf chain = BUF_INIT;
    int rc = fingerprint_read(fingerprint, want, err);
    if (rc == 0 && (o->ca_file || strncmp(client_url(*c), "https:", 6) != 0))
        rc = det_fail(err, DET_EINVAL,
                      o->ca_file ? "--fingerprint and DET_MASTER_CERT_FILE exclude each other"
                                 : "--fingerprint is of a master at https://");
    if (rc == 0)
        rc = client_peer_chain(*c, &chain, err);
    if (rc < 0)
        return rc;
    char *pem det_cleanup(freep) = pem_find(buf_str(&chain), want);
    if (pem)
        return settle_authority(o, pem, c, err);
    char *last det_cleanup(freep) = pem_last(buf_str(&chain));
    det_ignore(pem_fingerprint(last ? last : "", shown, NULL), "no certificate has no fingerprint");
    return det_fail(err, DET_EAUTH,
                    "WHO ANSWERS AT %s IS NOT WHO YOU SAID. Somebody may stand between you and the "
                    "master, and nothing was sent.\n  said     %s\n  answers  %s",
                    client_url(*c), want, shown);
}

/* The master may have got a new authority, for which the one that is kept vouches. Where it cannot
 * be kept, the old one goes on to count. */
static void follow_succession(const struct client *c, const char *kept)
{
    det_cleanup(buf_finish) struct buf chain = BUF_INIT;
    char shown[FINGERPRINT_MAX];
    client_shown_chain(c, &chain);
    char *now det_cleanup(freep) = succession_find(kept, buf_str(&chain));
    if (now && pem_fingerprint(now, shown, NULL) == 0 && pins_put(client_url(c), now, NULL) == 0)
        fprintf(stderr,
                "%s has a new authority, for which the one that was trusted vouches; from now on "
                "that is\n  %s\n",
                client_url(c), shown);
}

static int check_kept(const struct client_options *o, struct client **c, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf chain = BUF_INIT;
    char *kept det_cleanup(freep) = NULL;
    struct det_err why = {0};
    int rc = pins_get(client_url(*c), &kept, err);
    if (rc == 0 && kept)
        rc = believe_authority(o, kept, c, err);
    if (rc < 0)
        return rc;
    rc = try_out(*c, err);
    if (rc == 0 && kept)
        follow_succession(*c, kept);
    if (rc != DET_EAUTH || client_peer_chain(*c, &chain, &why) < 0)
        return rc;
    return kept ? tell_changed(client_url(*c), kept, buf_str(&chain), err)
                : first_use(o, buf_str(&chain), c, err);
}

int trust_open(const struct client_options *o, const char *fingerprint, struct client **ret,
               struct det_err *err)
{
    int rc = client_create(o, ret, err);
    if (rc < 0)
        return rc;
    if (fingerprint)
        return check_given(o, fingerprint, ret, err);
    if (o->ca_file || strncmp(client_url(*ret), "https:", 6) != 0)
        return 0;
    return check_kept(o, ret, err);
}
