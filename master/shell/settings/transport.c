#include "transport.h"

#include "fsx.h"
#include "log.h"
#include "mem.h"
#include "slow.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PEM_BYTES_MAX = 1 << 20,
    NAMES_MAX = 64,
    NAME_MAX_BYTES = 256,
    RETRY_MS = 3600000, /* of a renewal that failed */
};

struct names {
    char text[NAMES_MAX][NAME_MAX_BYTES];
    const char *v[NAMES_MAX];
    size_t n;
};

static bool is_loopback_address(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

/* All addresses of the host; one that is unknown is somebody else's mistake to report. */
static bool is_loopback(const char *host)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *all = NULL;
    if (getaddrinfo(host, NULL, &want, &all) != 0)
        return true;
    bool ret = true;
    for (const struct addrinfo *a = all; a; a = a->ai_next)
        ret = ret && is_loopback_address(a->ai_addr);
    freeaddrinfo(all);
    return ret;
}

static int read_files(const char *cert, const char *key, struct pem_pair *ret, struct det_err *err)
{
    int rc = fsx_read_file(AT_FDCWD, cert, PEM_BYTES_MAX, &ret->cert, err);
    if (rc < 0)
        return det_wrap(err, rc, "security.tls.cert");
    rc = fsx_read_file(AT_FDCWD, key, PEM_BYTES_MAX, &ret->key, err);
    if (rc < 0)
        return det_wrap(err, rc, "security.tls.key");
    if (!ret->cert.len || !ret->key.len)
        return det_fail(err, DET_EINVAL, "security.tls.%s: %s is empty: put a %s in PEM there",
                        ret->cert.len ? "key" : "cert", ret->cert.len ? key : cert,
                        ret->cert.len ? "private key" : "certificate");
    return 0;
}

static void hash_files(const struct pem_pair *files, char ret[HASH_HEX_MAX])
{
    struct buf both = BUF_INIT;
    buf_add(&both, files->cert.p, files->cert.len);
    buf_add(&both, files->key.p, files->key.len);
    hash_bytes(HASH_SHA256, both.p, both.len, ret);
    buf_finish(&both);
}

/* What is no certificate the server refuses. */
static void take_files(struct transport *t, const struct pem_pair *files)
{
    hash_files(files, t->seen);
    if (authority_fingerprint(buf_str(&files->cert), t->print, NULL) == 0)
        log_info("the certificate's authority is %s", t->print);
}

static void authority_finish(struct db_authority *a)
{
    struct pem_pair pair = {a->cert, a->key};
    pem_pair_finish(&pair);
    buf_finish(&a->vouches);
    buf_finish(&a->formers);
    *a = (struct db_authority){0};
}

/* Two masters that start at once both make one; the first that is written is everybody's. */
static int authority_open(const struct masterconf *conf, struct db_authority *ret,
                          struct det_err *err)
{
    int rc = db_authority_read(conf->db, ret, err);
    if (rc < 0 || ret->cert.len)
        return rc;
    struct pem_pair made = {BUF_INIT, BUF_INIT};
    rc = authority_make(&made, err);
    if (rc == 0)
        rc = db_authority_keep(conf->db, buf_str(&made.cert), buf_str(&made.key), err);
    pem_pair_finish(&made);
    return rc < 0 ? rc : db_authority_read(conf->db, ret, err);
}

static void name_add(struct names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strcmp(all->v[i], name))
            return;
    if (all->n == NAMES_MAX || strlen(name) >= NAME_MAX_BYTES)
        return;
    snprintf(all->text[all->n], NAME_MAX_BYTES, "%s", name);
    all->v[all->n] = all->text[all->n];
    all->n++;
}

static void names_of_interfaces(struct names *all)
{
    struct ifaddrs *list = NULL;
    char text[NAME_MAX_BYTES];
    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t n = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if ((family == AF_INET || family == AF_INET6) &&
            getnameinfo(i->ifa_addr, n, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0)
            name_add(all, text);
    }
    freeifaddrs(list);
}

/* What clients may call this host: its name, its addresses, loopback's, and what it listens on. */
static void names_of_host(const struct masterconf *conf, struct names *all)
{
    char name[NAME_MAX_BYTES] = "";
    gethostname(name, sizeof name - 1);
    name_add(all, "localhost");
    name_add(all, name);
    name_add(all, conf->host);
    names_of_interfaces(all);
}

void transport_authority(const struct transport *t, struct buf *out)
{
    if (t->conf->tls_cert)
        return;
    buf_add(out, t->vouches.p, t->vouches.len);
    buf_add(out, t->formers.p, t->formers.len);
    buf_add(out, t->ca.cert.p, t->ca.cert.len);
}

/* Its own certificate first; then what leads from it to each authority that anybody may have kept,
 * the present one last. */
static int issue_own(struct transport *t, struct pem_pair *ret, struct det_err *err)
{
    struct names names = {.n = 0};
    names_of_host(t->conf, &names);
    int rc = authority_issue(&t->ca, names.v, names.n, ret, err);
    if (rc < 0)
        return rc;
    transport_authority(t, &ret->cert);
    return authority_fingerprint(buf_str(&t->ca.cert), t->print, err);
}

/* A full disk does not keep the master from showing it: who has the file as it was believes an
 * authority that vouches for this one. */
static void tell_authority(const struct transport *t)
{
    const char *path = t->conf->tls_authority_file;
    struct det_err err;
    log_info("the cluster's own certificate authority is %s", t->print);
    if (path && fsx_write_atomic(AT_FDCWD, path, t->ca.cert.p, t->ca.cert.len, 0644, &err) < 0)
        log_error("security.tls.authority_file does not have the present authority, until it can "
                  "be written at the next start: %s",
                  err.text);
}

static struct transport with_authority(const struct transport *t, struct db_authority *a)
{
    struct transport ret = *t;
    ret.ca = (struct pem_pair){a->cert, a->key};
    ret.vouches = a->vouches;
    ret.formers = a->formers;
    *a = (struct db_authority){0};
    return ret;
}

static int show_certificate(struct transport *t, struct http *h, struct det_err *err)
{
    struct pem_pair server = {BUF_INIT, BUF_INIT};
    int rc = issue_own(t, &server, err);
    if (rc == 0)
        rc = http_set_certificate(h, &server, err);
    pem_pair_finish(&server);
    return rc;
}

int transport_take(struct transport *t, struct http *h, struct db_authority *a, struct det_err *err)
{
    if (strcmp(buf_str(&t->ca.cert), buf_str(&a->cert)) == 0) {
        authority_finish(a);
        return 0;
    }
    bool is_own = !t->conf->tls_cert; /* else it is not what clients see */
    struct transport next = with_authority(t, a);
    int rc = is_own ? show_certificate(&next, h, err) : 0;
    if (rc < 0) {
        transport_finish(&next);
        return rc;
    }
    transport_finish(t);
    *t = next;
    if (is_own)
        tell_authority(t);
    return 0;
}

int transport_follow(struct transport *t, struct http *h, struct det_err *err)
{
    struct db_authority a = {0};
    if (!masterconf_is_tls(t->conf))
        return 0;
    int rc = authority_open(t->conf, &a, err);
    if (rc == 0)
        rc = transport_take(t, h, &a, err);
    authority_finish(&a);
    return rc;
}

/* A look at the files, in a thread of its own: it lasts as long as their file system hangs. */
struct look {
    struct slow_job job;
    struct transport *t;
    struct http *http;
    char *cert, *key;
    struct pem_pair files;
    int rc;
    struct det_err err;
};

static void look_work(struct slow_job *j)
{
    struct look *l = container_of(j, struct look, job);
    l->rc = read_files(l->cert, l->key, &l->files, &l->err);
}

/* A file may be there before the other one: what does not fit is looked at again when it has
 * changed. */
static void look_take(struct look *l)
{
    char now[HASH_HEX_MAX] = "";
    if (l->rc == 0)
        hash_files(&l->files, now);
    if (strcmp(now, l->t->seen) == 0)
        return;
    memcpy(l->t->seen, now, sizeof now);
    int rc = l->rc < 0 ? l->rc : http_set_certificate(l->http, &l->files, &l->err);
    if (rc < 0)
        log_error("the master shows the certificate of before: %s", l->err.text);
    else
        take_files(l->t, &l->files);
}

static void look_done(struct slow_job *j, int status)
{
    struct look *l = container_of(j, struct look, job);
    if (status == 0 && !l->t->is_over)
        look_take(l);
    l->t->is_looking = false;
    pem_pair_finish(&l->files);
    free(l->cert);
    free(l->key);
    free(l);
}

static void renew_from_files(struct transport *t, struct http *h, uv_loop_t *loop)
{
    if (t->is_looking)
        return;
    if (!t->looks)
        t->looks = slow_create(loop, 1, 1);
    struct look *l = det_zalloc(sizeof *l);
    *l = (struct look){.job = {.work = look_work, .done = look_done},
                       .t = t,
                       .http = h,
                       .cert = det_strdup(t->conf->tls_cert),
                       .key = det_strdup(t->conf->tls_key)};
    t->is_looking = true;
    det_ignore(slow_push(t->looks, &l->job), "the one that may wait");
    uv_unref((uv_handle_t *)&l->job.async); /* the master's end does not wait for it */
}

static void renew_own(struct transport *t, struct http *h, uint64_t now_ms)
{
    struct det_err err;
    bool is_first = t->renew_ms == 0;
    if (now_ms < t->renew_ms)
        return;
    t->renew_ms = now_ms + (uint64_t)t->conf->tls_own_renewal_ms;
    if (is_first)
        return;
    if (show_certificate(t, h, &err) == 0) {
        log_info("the master's certificate is renewed");
        return;
    }
    log_error("the master's certificate was not renewed, which is tried again: %s", err.text);
    if (t->renew_ms > now_ms + RETRY_MS)
        t->renew_ms = now_ms + RETRY_MS;
}

void transport_renew(struct transport *t, struct http *h, uv_loop_t *loop)
{
    if (t->conf->tls_cert)
        renew_from_files(t, h, loop);
    else
        renew_own(t, h, uv_now(loop));
}

void transport_stop(struct transport *t)
{
    t->is_over = true;
}

void transport_finish(struct transport *t)
{
    pem_pair_finish(&t->ca);
    buf_finish(&t->vouches);
    buf_finish(&t->formers);
}

bool transport_is_insecure(const struct masterconf *conf)
{
    return !masterconf_is_tls(conf) && !is_loopback(conf->host);
}

void transport_warn(const struct masterconf *conf)
{
    log_warning("passwords and tokens travel in the clear: this master serves plain HTTP on %s, as "
                "--insecure allows",
                conf->host);
}

int transport_open(const struct masterconf *conf, struct transport *ret,
                   struct pem_pair *ret_server, struct det_err *err)
{
    struct db_authority a = {0};
    *ret = (struct transport){.conf = conf};
    if (transport_is_insecure(conf) && !conf->insecure)
        return det_fail(
            err, DET_EINVAL,
            "host %s can be reached over a network, and plain HTTP carries passwords and "
            "tokens in the clear: set security.tls.own (--tls-own, a certificate of the "
            "cluster's own), or security.tls.cert and .key; or say --insecure",
            conf->host);
    if (!masterconf_is_tls(conf))
        return 0;
    int rc = authority_open(conf, &a, err);
    *ret = with_authority(ret, &a);
    if (rc < 0)
        return rc;
    if (conf->tls_cert) {
        rc = read_files(conf->tls_cert, conf->tls_key, ret_server, err);
        if (rc == 0)
            take_files(ret, ret_server);
        return rc;
    }
    rc = issue_own(ret, ret_server, err);
    if (rc == 0)
        tell_authority(ret);
    return rc;
}
