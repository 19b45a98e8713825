#include "transport.h"

#include "db_authority.h"
#include "fsx.h"
#include "log.h"
#include "mem.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEM_BYTES_MAX = 1 << 20, NAMES_MAX = 64, NAME_MAX_BYTES = 256 };

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

static int read_files(const struct masterconf *conf, struct pem_pair *ret, struct det_err *err)
{
    int rc = fsx_read_file(AT_FDCWD, conf->tls_cert, PEM_BYTES_MAX, &ret->cert, err);
    if (rc < 0)
        return det_wrap(err, rc, "security.tls.cert");
    rc = fsx_read_file(AT_FDCWD, conf->tls_key, PEM_BYTES_MAX, &ret->key, err);
    if (rc < 0)
        return det_wrap(err, rc, "security.tls.key");
    char print[FINGERPRINT_MAX];
    /* What is no certificate the server refuses. */
    if (authority_fingerprint(buf_str(&ret->cert), print, NULL) == 0)
        log_info("the certificate's authority is %s", print);
    return 0;
}

/* Two masters that start at once both make one; the first that is written is everybody's. */
static int authority_open(const struct masterconf *conf, struct pem_pair *ret, struct det_err *err)
{
    int rc = db_authority_read(conf->db, &ret->cert, &ret->key, err);
    if (rc < 0 || ret->cert.len)
        return rc;
    struct pem_pair made = {BUF_INIT, BUF_INIT};
    rc = authority_make(&made, err);
    if (rc == 0)
        rc = db_authority_keep(conf->db, buf_str(&made.cert), buf_str(&made.key), err);
    pem_pair_finish(&made);
    return rc < 0 ? rc : db_authority_read(conf->db, &ret->cert, &ret->key, err);
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

static int own(const struct masterconf *conf, const struct pem_pair *ca, struct pem_pair *ret,
               struct det_err *err)
{
    struct names names = {.n = 0};
    char print[FINGERPRINT_MAX];
    names_of_host(conf, &names);
    int rc = authority_issue(ca, names.v, names.n, ret, err);
    if (rc == 0)
        rc = authority_fingerprint(buf_str(&ca->cert), print, err);
    if (rc == 0 && conf->tls_authority_file)
        rc = fsx_write_atomic(AT_FDCWD, conf->tls_authority_file, ca->cert.p, ca->cert.len, 0644,
                              err);
    if (rc == 0)
        log_info("the cluster's own certificate authority is %s", print);
    return rc;
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

int transport_open(const struct masterconf *conf, struct pem_pair *ret, struct pem_pair *ret_ca,
                   struct det_err *err)
{
    if (transport_is_insecure(conf) && !conf->insecure)
        return det_fail(err, DET_EINVAL,
                        "host %s can be reached over a network, and plain HTTP carries passwords and "
                        "tokens in the clear: set security.tls.own (--tls-own, a certificate of the "
                        "cluster's own), or security.tls.cert and .key; or say --insecure",
                        conf->host);
    if (!masterconf_is_tls(conf))
        return 0;
    int rc = authority_open(conf, ret_ca, err);
    if (rc < 0)
        return rc;
    return conf->tls_cert ? read_files(conf, ret, err) : own(conf, ret_ca, ret, err);
}
