#include "doctor.h"

#include "db_health.h"
#include "fsx.h"
#include "http.h"
#include "mem.h"
#include "storeplace.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SERVER_MIN = 140000, FILES_MIN = 4096, MARKER_BYTES_MAX = 4096 };
#define CLOCK_DIFF_MAX_US 2000000

static void check_schema(struct findings *f, const struct db_health *h)
{
    if (h->schema > h->newest)
        findings_add(f, FINDING_FAIL, "database schema",
                     "start the newer det-master, or restore a backup",
                     "version %d, this det-master knows %d", h->schema, h->newest);
    else if (h->functions > h->functions_newest)
        findings_add(
            f, FINDING_FAIL, "database schema", "start the newer det-master, or restore a backup",
            "functions of number %d, this det-master has %d", h->functions, h->functions_newest);
    else if (h->schema < h->newest && !h->may_create)
        findings_add(f, FINDING_FAIL, "database rights",
                     "make the user of the connection the owner of the database, or "
                     "GRANT CREATE ON SCHEMA public TO it",
                     "this user may not make tables, and the schema has to be taken from %d to %d",
                     h->schema, h->newest);
    else
        findings_add(f, FINDING_OK, "database schema", NULL, "version %d of %d%s", h->schema,
                     h->newest, h->schema < h->newest ? ": the start brings it up to date" : "");
}

/* Commits that need not wait are of no harm: the master's own sessions always do (db.c). */
static void check_durability(struct findings *f, const struct db_health *h)
{
    bool waits = strcmp(h->commit, "on") == 0 || strcmp(h->commit, "remote_apply") == 0;
    if (!h->syncs)
        findings_add(f, FINDING_WARN, "database durability",
                     "set fsync = on and full_page_writes = on in postgresql.conf",
                     "a crash of its host loses or damages what was acknowledged");
    else if (waits)
        findings_add(f, FINDING_OK, "database durability", NULL, "commits wait for the disk");
    else
        findings_add(f, FINDING_OK, "database durability", NULL,
                     "synchronous_commit is %s; det-master's own sessions set it to on", h->commit);
}

static void check_database(struct findings *f, const struct masterconf *c)
{
    struct db_health h;
    struct det_err err;
    if (db_health(c->db, &h, &err) < 0) {
        findings_add(f, FINDING_FAIL, "database",
                     "start PostgreSQL, make the user and the database, or correct db (--db)", "%s",
                     err.text);
        return;
    }
    bool old = h.server_number < SERVER_MIN;
    findings_add(f, old ? FINDING_FAIL : FINDING_OK, "database",
                 old ? "install PostgreSQL 14 or newer" : NULL, "PostgreSQL %s%s", h.server,
                 h.is_led ? "; another master leads, this one would stand by" : "");
    check_schema(f, &h);
    check_durability(f, &h);
    int64_t diff = h.clock_diff_us < 0 ? -h.clock_diff_us : h.clock_diff_us;
    bool far = diff > CLOCK_DIFF_MAX_US;
    findings_add(f, far ? FINDING_WARN : FINDING_OK, "database clock",
                 far ? "synchronise both hosts: sessions would end early or late" : NULL,
                 "%lld ms from ours", (long long)(h.clock_diff_us / 1000));
}

/* Binding is the only sure way to know. */
static int port_try(const struct addrinfo *a)
{
    int one = 1;
    det_cleanup(det_closep) int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return bind(fd, a->ai_addr, a->ai_addrlen) < 0 ? errno : 0;
}

static void check_port(struct findings *f, const struct masterconf *c)
{
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)c->port);
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *a = NULL;
    int rc = getaddrinfo(c->host, service, &want, &a);
    if (rc) {
        findings_add(f, FINDING_FAIL, "host", "correct host: an address of this machine", "%s: %s",
                     c->host, gai_strerror(rc));
        return;
    }
    rc = port_try(a);
    freeaddrinfo(a);
    const char *advice = rc == EADDRINUSE ? "end what listens there (ss -ltnp), perhaps a "
                                            "det-master already runs; or set another port"
                         : rc == EACCES   ? "choose a port from 1024, or grant CAP_NET_BIND_SERVICE"
                                          : "correct host: an address of this machine";
    findings_add(f, rc ? FINDING_FAIL : FINDING_OK, "port", rc ? advice : NULL, "%s:%s: %s",
                 c->host, service, rc ? strerror(rc) : "free");
}

/* Whether the marker in a store's root (storage.h) is the one that the database knows. */
static bool is_marked(const char *place, const char *id)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/.det-store", place);
    if (fsx_read_file(AT_FDCWD, path, MARKER_BYTES_MAX, &b, NULL) < 0)
        return false;
    JSON_OWN j = json_parse(buf_str(&b), b.len, NULL);
    return strcmp(json_str(j, "id", ""), id) == 0;
}

/* What the master does not need itself; but an unmounted store has made many a checkpoint
 * "lost". */
static void check_store(struct findings *f, const struct masterconf *c, const char *place)
{
    char id[DB_STORE_ID_MAX];
    if (db_health_store(c->db, place, id, NULL) < 0)
        return; /* told already */
    if (!id[0])
        findings_add(f, FINDING_OK, "checkpoint store", NULL, "%s: not used yet", place);
    else if (is_marked(place, id))
        findings_add(f, FINDING_OK, "checkpoint store", NULL, "%s: %s", place, id);
    else
        findings_add(f, FINDING_WARN, "checkpoint store",
                     "mount it here too if checkpoints are to be downloaded through the master; "
                     "det store list says which agents have it",
                     "%s is not store %s on this host", place, id);
}

static void check_storage(struct findings *f, const struct masterconf *c)
{
    const json_t *s = json_obj(c->checkpoint_storage, "checkpoint_storage");
    const char *path = json_str(s, "host_path", json_str(s, "container_path", NULL));
    det_cleanup(freep) char *place = NULL;
    if (!s)
        findings_add(f, FINDING_WARN, "checkpoint storage",
                     "set checkpoint_storage (or --checkpoint-dir): a directory all agents share",
                     "none: every experiment has to name its own");
    else if (path && access(path, R_OK | X_OK) < 0)
        findings_add(f, FINDING_WARN, "checkpoint storage",
                     "mount it here too if checkpoints are to be downloaded through the master",
                     "%s cannot be read on this host: %s", path, strerror(errno));
    else
        findings_add(f, FINDING_OK, "checkpoint storage", NULL, "%s", path ? path : "set");
    if (s && storeplace_of(s, &place, NULL) == 0)
        check_store(f, c, place);
}

static void check_tls(struct findings *f, const struct masterconf *c)
{
    const char *const paths[] = {c->tls_cert, c->tls_key};
    static const char *const what[] = {"security.tls.cert", "security.tls.key"};
    for (size_t i = 0; c->tls_cert && i < DET_ARRAY_LEN(paths); i++) {
        bool good = access(paths[i], R_OK) == 0;
        findings_add(f, good ? FINDING_OK : FINDING_FAIL, what[i],
                     good ? NULL : "put the file there, readable by whom this runs as", "%s%s%s",
                     paths[i], good ? "" : ": ", good ? "" : strerror(errno));
    }
}

static void check_files(struct findings *f, const struct masterconf *c)
{
    const struct {
        const char *what, *path;
    } all[] = {{"agent_token_file", c->agent_token_file},
               {"admin_password_file", c->admin_password_file},
               {"port_file", c->port_file},
               {"ready_file", c->ready_file}};
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++)
        if (all[i].path)
            findings_dir_of(f, all[i].what, all[i].path);
}

int doctor_run(const struct masterconf *c)
{
    struct findings f = {0};
    findings_add(&f, FINDING_OK, "settings", NULL, "valid");
    check_database(&f, c);
    check_port(&f, c);
    check_tls(&f, c);
    check_files(&f, c);
    check_storage(&f, c);
    findings_clock(&f);
    findings_files(&f, FILES_MIN);
    return findings_print(&f, "det-master can serve", "det-master cannot serve like this");
}
