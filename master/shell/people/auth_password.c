/* Passwords: the client's transformation, argon2id, both off the loop. */
#include "auth.h"
#include "auth_private.h"
#include "hash.h"
#include "mem.h"
#include "shell.h"

#include <argon2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* The salt that Determined's clients put before the password; not a secret. */
static const char client_salt[] = "GubPEmmotfiK9TMD6Zdw";
enum { ARGON_ROUNDS = 2, ARGON_KIB = 19456, ARGON_LANES = 1, SALT_BYTES = 16, KEY_BYTES = 32 };

static void as_sent(const char *password, bool is_hashed, char out[HASH_HEX_MAX])
{
    if (is_hashed || !*password) {
        snprintf(out, HASH_HEX_MAX, "%s", password);
        return;
    }
    det_cleanup(freep) char *text = det_asprintf("%s%s", client_salt, password);
    hash_bytes(HASH_SHA512, text, strlen(text), out);
}

int auth_hash_now(const char *password, bool is_hashed, char out[AUTH_HASH_MAX],
                  struct det_err *err)
{
    char sent[HASH_HEX_MAX];
    uint8_t salt[SALT_BYTES];
    as_sent(password, is_hashed, sent);
    if (getrandom(salt, sizeof salt, 0) != sizeof salt)
        return det_fail(err, DET_EIO, "the kernel gave no random bytes");
    int rc = argon2id_hash_encoded(ARGON_ROUNDS, ARGON_KIB, ARGON_LANES, sent, strlen(sent), salt,
                                   sizeof salt, KEY_BYTES, out, AUTH_HASH_MAX);
    return rc == ARGON2_OK ? 0 : det_fail(err, DET_EIO, "argon2: %s", argon2_error_message(rc));
}

bool auth_verify_now(const char *password, bool is_hashed, const char *stored)
{
    /* Spends the same time when there is no password to compare with. */
    static const char nobody[] = "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5aGFzdGhpc3NhbHQ$"
                                 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    char sent[HASH_HEX_MAX];
    as_sent(password, is_hashed, sent);
    bool some = stored && *stored;
    int rc = argon2id_verify(some ? stored : nobody, sent, strlen(sent));
    return rc == ARGON2_OK && some;
}

struct hash_job {
    struct slow_job job;
    char *password;
    bool is_hashed;
    char out[AUTH_HASH_MAX];
    int rc;
    auth_hash_cb *cb;
    void *arg;
};

static void hash_work(struct slow_job *job)
{
    struct hash_job *j = container_of(job, struct hash_job, job);
    j->rc = auth_hash_now(j->password, j->is_hashed, j->out, NULL);
}

static void hash_done(struct slow_job *job, int status)
{
    struct hash_job *j = container_of(job, struct hash_job, job);
    j->cb(j->arg, status == 0 && j->rc == 0 ? j->out : NULL);
    free(j->password);
    free(j);
}

void auth_hash(struct shell *sh, const char *password, bool is_hashed, auth_hash_cb *cb, void *arg)
{
    struct hash_job *j = det_zalloc(sizeof *j);
    j->password = det_strdup(password);
    j->is_hashed = is_hashed;
    j->cb = cb;
    j->arg = arg;
    j->job = (struct slow_job){.work = hash_work, .done = hash_done};
    if (auth_work(sh->auth, &j->job, NULL) < 0)
        hash_done(&j->job, -1);
}
