/*
 * What runs above record.so, and what looks at what a loss of power left of it.
 *
 *   scene store DIR            makes DIR/a/store and three checkpoints in it
 *   scene spool DIR            a queue of reports: appended, sent, shrunk
 *   scene task DIR             the agent's files of three tasks
 *   scene life DIR             what the agent heard of three leaders, in a work directory it makes
 *   scene identity DIR         its key and certificate, in one
 *   scene check-NAME DIR MARK...   what was promised must hold: exit status 0, else 1 and a line
 */
#include "fsx.h"
#include "identity.h"
#include "life.h"
#include "mem.h"
#include "spool.h"
#include "storage.h"
#include "taskdir.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int rc, const char *what, const struct det_err *err)
{
    if (rc >= 0)
        return;
    printf("%s: %s\n", what, err->text);
    exit(1);
}

static void broken(const char *what, const char *of)
{
    printf("broken: %s (%s)\n", what, of);
    exit(1);
}

static void promise(const char *what, const char *of)
{
    det_cleanup(freep) char *path = det_asprintf("/.power-mark/%s %s", what, of);
    if (access(path, F_OK) < 0)
        must(-1, "no recorder", &(struct det_err){0});
}

static const char *has_mark(char **marks, const char *what)
{
    for (size_t n = strlen(what); *marks; marks++)
        if (strncmp(*marks, what, n) == 0 && (*marks)[n] == ' ')
            return *marks + n + 1;
    return NULL;
}

/* ---- a store ---- */

static const char *const uuids[] = {"11111111-0000-4000-8000-000000000001",
                                    "22222222-0000-4000-8000-000000000002",
                                    "33333333-0000-4000-8000-000000000003"};

static void put_file(const char *dir, const char *name, const char *text)
{
    struct det_err err = {0};
    det_cleanup(freep) char *path = det_asprintf("%s/%s", dir, name);
    det_cleanup(det_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd < 0 ? -1 : fsx_write_all(fd, text, strlen(text), &err), path, &err);
}

static void put_checkpoint(struct storage *s, const char *uuid)
{
    struct det_err err = {0};
    det_cleanup(freep) char *dir = NULL;
    must(storage_begin(s, uuid, &dir, &err), "begin", &err);
    det_cleanup(freep) char *code = det_asprintf("%s/code", dir);
    if (mkdir(code, 0755) < 0)
        broken("mkdir", code);
    put_file(dir, "weights", uuid);
    put_file(dir, "code/model.c", "int model;\n");
    JSON_OWN m =
        json_make("{s:s, s:o}", "uuid", uuid, STORAGE_HASHES, storage_hash_dir(dir, NULL, &err));
    det_cleanup(freep) char *text = json_text(m);
    put_file(dir, "metadata.json", text);
    must(storage_publish(s, uuid, &err), "publish", &err);
    promise("row", uuid);
}

static struct storage *open_store(const char *dir, const char *id, struct det_err *err)
{
    struct storage *s = NULL;
    det_cleanup(freep) char *root = det_asprintf("%s/a/store", dir);
    JSON_OWN config = json_make("{s:s, s:s}", "type", "directory", "container_path", root);
    return storage_open_store(config, id, &s, err) < 0 ? NULL : s;
}

static void run_store(const char *dir)
{
    struct det_err err = {0};
    char id[UUID_STR_MAX];
    det_cleanup(freep) char *root = det_asprintf("%s/a/store", dir);
    must(storage_make(root, NULL, id, &err), "marker", &err);
    promise("store", id);
    struct storage *s = open_store(dir, id, &err);
    must(s ? 0 : -1, "open", &err);
    for (size_t i = 0; i < DET_ARRAY_LEN(uuids); i++)
        put_checkpoint(s, uuids[i]);
    promise("gone", uuids[0]);
    must(storage_delete(s, uuids[0], &err), "delete", &err);
    storage_close(s);
}

/* Under its name it is whole, whether anybody was told of it or not. */
static void check_checkpoint(struct storage *s, const char *uuid)
{
    struct det_err err = {0};
    struct buf b = BUF_INIT;
    det_cleanup(freep) char *dir = storage_path(s, uuid);
    det_cleanup(freep) char *path = det_asprintf("%s/metadata.json", dir);
    int rc = fsx_read_file(AT_FDCWD, path, 1 << 20, &b, &err);
    JSON_OWN m = rc < 0 ? NULL : json_parse(buf_str(&b), b.len, &err);
    buf_finish(&b);
    if (!m || json_object_size(json_obj(m, STORAGE_HASHES)) == 0 ||
        storage_verify_dir(dir, m, &err) < 0)
        broken("a published checkpoint is not whole", err.text);
}

static void check_store(const char *dir, char **marks)
{
    struct det_err err = {0};
    const char *id = has_mark(marks, "store"), *gone = has_mark(marks, "gone");
    struct storage *s = open_store(dir, id, &err);
    if (!s)
        broken("the store is away", err.text);
    for (; *marks; marks++)
        if (strncmp(*marks, "row ", 4) == 0 && !(gone && strcmp(*marks + 4, gone) == 0) &&
            storage_exists(s, *marks + 4, &err) < 0)
            broken("a checkpoint whose row is durable is not there", err.text);
    for (size_t i = 0; i < DET_ARRAY_LEN(uuids); i++)
        if (!(gone && strcmp(uuids[i], gone) == 0) && storage_exists(s, uuids[i], &err) == 0)
            check_checkpoint(s, uuids[i]);
    must(storage_sweep(s, 0, &err), "sweep", &err);
    must(storage_check(s, &err), "a checkpoint cannot be begun", &err);
    storage_close(s);
}

/* ---- a spool of reports ---- */

#define RECORDS 24

static struct spool *open_spool(const char *dir, struct det_err *err)
{
    struct spool *s = NULL;
    det_cleanup(freep) char *path = det_asprintf("%s/reports", dir);
    return spool_open(path, &s, err) < 0 ? NULL : s;
}

/* The text of record n: some large ones, so that the file shrinks. */
static char *body_of(int n)
{
    size_t bytes = n % 8 == 7 ? 300000 : (size_t)(20 + n);
    char *text = det_zalloc(bytes + 1);
    memset(text, 'a' + n, bytes);
    return text;
}

static void run_spool(const char *dir)
{
    struct det_err err = {0};
    struct spool *s = open_spool(dir, &err);
    must(s ? 0 : -1, "open", &err);
    for (int n = 0; n < RECORDS; n++) {
        struct spool_record got;
        det_cleanup(freep) char *seq = det_asprintf("%d", n);
        det_cleanup(freep) char *body = body_of(n);
        must(spool_append(s, &(struct spool_record){seq, "POST", "/m", body}, &err), "put", &err);
        while (n % 3 == 2 && spool_next(s, &got, NULL) == 0) {
            must(spool_sent(s, &err), "sent", &err);
            if (n % 8 != 7 && n % 2)
                break;
        }
    }
    spool_close(s);
}

/* Whole records, in order, none left out between two: or the words that this is no spool. */
static void check_spool(const char *dir, char **marks)
{
    struct det_err err = {0};
    struct spool *s = open_spool(dir, &err);
    struct spool_record got;
    int last = -1;
    if (!s && err.code == DET_ECORRUPT)
        return;
    must(s ? 0 : -1, "open", &err);
    while (spool_next(s, &got, &err) == 0) {
        int n = (int)strtol(got.seq, NULL, 10);
        det_cleanup(freep) char *body = body_of(n);
        if (n < 0 || n >= RECORDS || strcmp(got.body, body) != 0 || strcmp(got.path, "/m") != 0)
            broken("a report is not what was put", got.seq);
        if (last >= 0 && n != last + 1)
            broken("a report is left out, or twice", got.seq);
        last = n;
        must(spool_sent(s, &err), "sent", &err);
    }
    if (err.code != DET_ENOENT)
        broken("the spool cannot be read to its end", err.text);
    spool_close(s);
}

/* ---- the agent's files ---- */

static const char *const allocs[] = {"exp-1.1.1", "exp-1.2.1", "exp-2.3.1"};

static json_t *task_of(const char *alloc)
{
    return json_make("{s:s, s:s}", "alloc", alloc, "is", "whole");
}

static void run_task(const char *dir)
{
    struct det_err err = {0};
    struct taskdirs d = {.fd = -1, .server = -1};
    must(taskdirs_open(&d, dir, false, json_object(), &err), "open", &err);
    for (size_t i = 0; i < DET_ARRAY_LEN(allocs); i++) {
        JSON_OWN task = task_of(allocs[i]);
        must(taskdir_make(&d, allocs[i], "c1", task, &err), "make", &err);
    }
    taskdir_drop(&d, allocs[0]);
    taskdirs_close(&d);
}

/* Of each that is listed: the whole task, or an error for which the agent drops it and says so. */
static void check_task(const char *dir, char **marks)
{
    struct det_err err = {0};
    struct taskdirs d = {.fd = -1, .server = -1};
    must(taskdirs_open(&d, dir, false, json_object(), &err), "open", &err);
    char **names = taskdir_list(&d);
    for (size_t i = 0; names[i]; i++) {
        JSON_OWN j = taskdir_spec(&d, names[i], &err);
        JSON_OWN want = task_of(names[i]);
        if (j && !json_equal(json_object_get(j, "task"), want))
            broken("half a task is taken for a whole one", names[i]);
        if (!j && !err.text[0])
            broken("a task is dropped without a word", names[i]);
        free(names[i]);
    }
    free(names);
    taskdirs_close(&d);
}

/* ---- what the agent keeps of itself ---- */

static struct link_life life_of(int epoch)
{
    return (struct link_life){.cluster = "c", .nonce = "n", .epoch = epoch, .exp = 10 * epoch};
}

/* In the order of the agent's start: its identity makes the work directory. */
static struct life *open_life(const char *dir)
{
    struct det_err err = {0};
    struct life *l = NULL;
    struct identity id;
    det_cleanup(freep) char *work = det_asprintf("%s/a/work", dir);
    must(identity_open(work, &id, &err), "open", &err);
    identity_finish(&id);
    must(life_open(work, &l, &err), "open", &err);
    return l;
}

static void run_life(const char *dir)
{
    struct det_err err = {0};
    struct life *l = open_life(dir);
    for (int epoch = 1; epoch <= 3; epoch++) {
        struct link_ack a = {.has_life = true, .life = life_of(epoch)};
        must(life_take(l, &a, false, &err), "take", &err);
        det_cleanup(freep) char *said = det_asprintf("%d", epoch);
        promise("leader", said);
        a.life.trial = epoch;
        must(life_take(l, &a, false, &err), "take", &err);
        life_sync(l);
    }
    life_close(l);
}

/* No leader is forgotten that this agent has served. */
static void check_life(const char *dir, char **marks)
{
    struct det_err err = {0};
    struct life *l = open_life(dir);
    struct link_life seen = {0};
    int64_t promised = 0;
    for (; *marks; marks++)
        if (strncmp(*marks, "leader ", 7) == 0)
            promised = strtol(*marks + 7, NULL, 10);
    JSON_OWN j = life_seen(l);
    if (j)
        must(link_life_decode(j, &seen, &err), "decode", &err);
    if (seen.epoch < promised || seen.exp != 10 * seen.epoch)
        broken("a leader is forgotten", dir);
    life_close(l);
}

static const char key_pem[] = "-----BEGIN PRIVATE KEY-----\n"
                              "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOhxByQBjgoBpvWyU\n"
                              "1RN4HlYklmIFRhLrCwYf3ZRdOlqhRANCAAR9vmJcNyb6RUBzmm5PMnnOIqSzYel8\n"
                              "m15SpOb9JqaUEnuu9rNUuiiASi1eiWdXm0O65e7xkdLsiQnPGIury7Di\n"
                              "-----END PRIVATE KEY-----\n";
static const char cert_pem[] = "-----BEGIN CERTIFICATE-----\n"
                               "MIIBdzCCAR2gAwIBAgIUK3vvTuNiQx2z/FuibYp+jlUZgmkwCgYIKoZIzj0EAwIw\n"
                               "EDEOMAwGA1UEAwwFYWdlbnQwIBcNMjYxMTI3MTcwOTIyWhgPMjEyNjExMDMxNzA5\n"
                               "MjJaMBAxDjAMBgNVBAMMBWFnZW50MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n"
                               "fb5iXDcm+kVAc5puTzJ5ziKks2HpfJteUqTm/SamlBJ7rvazVLoogEotXolnV5tD\n"
                               "uuXu8ZHS7IkJzxiLq8uw4qNTMFEwHQYDVR0OBBYEFDV/CJ6tAeBOxDVBdnEzw0gt\n"
                               "lRJwMB8GA1UdIwQYMBaAFDV/CJ6tAeBOxDVBdnEzw0gtlRJwMA8GA1UdEwEB/wQF\n"
                               "MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgFPWLWOBgGVR7PuwBOOAISQmatO960Uo/\n"
                               "oouaGbROLM4CIQC5hHpf6UrVgBJA6nN2XcVO4P7KIf7FqRVxHjW92fJZXw==\n"
                               "-----END CERTIFICATE-----\n";

static void run_identity(const char *dir)
{
    struct det_err err = {0};
    struct identity id;
    det_cleanup(freep) char *work = det_asprintf("%s/a/work", dir);
    must(identity_open(work, &id, &err), "open", &err);
    must(identity_prepare(&id, key_pem, "token", &err), "prepare", &err);
    promise("key", "1");
    must(identity_take(&id, NULL, cert_pem, &err), "take", &err);
    promise("certificate", "1");
    identity_finish(&id);
}

static void check_identity(const char *dir, char **marks)
{
    struct det_err err = {0};
    struct identity id;
    det_cleanup(freep) char *work = det_asprintf("%s/a/work", dir);
    must(identity_open(work, &id, &err), "open", &err);
    if (has_mark(marks, "key") && !(id.key && strcmp(id.key, key_pem) == 0 && id.token))
        broken("the key of a join is lost", work);
    if (has_mark(marks, "certificate") && !(id.cert && strcmp(id.cert, cert_pem) == 0))
        broken("the certificate is lost", work);
    identity_finish(&id);
}

static const struct scene {
    const char *name;
    void (*run)(const char *dir);
    void (*check)(const char *dir, char **marks);
} scenes[] = {{"store", run_store, check_store},
              {"spool", run_spool, check_spool},
              {"task", run_task, check_task},
              {"life", run_life, check_life},
              {"identity", run_identity, check_identity}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < DET_ARRAY_LEN(scenes); i++) {
        if (strcmp(argv[1], scenes[i].name) == 0)
            return scenes[i].run(argv[2]), 0;
        if (strncmp(argv[1], "check-", 6) == 0 && strcmp(argv[1] + 6, scenes[i].name) == 0)
            return scenes[i].check(argv[2], argv + 3), 0;
    }
    fprintf(stderr,
            "usage: scene store|spool|task|life|identity DIR, scene check-NAME DIR MARK...\n");
    return 2;
}
