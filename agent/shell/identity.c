#include "identity.h"

#include "certkey.h"
#include "fsx.h"
#include "json.h"
#include "mem.h"
#include "pem.h"
#include "succession.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 64 << 10 };

static void forget_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void identity_finish(struct identity *id)
{
    forget_secret(id->key);
    free(id->path);
    free(id->authority_path);
    free(id->cert);
    free(id->token);
    *id = (struct identity){0};
}

static int read_file(struct identity *id, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    int rc = fsx_read_file(AT_FDCWD, id->path, FILE_BYTES_MAX, &b, err);
    if (rc < 0)
        return rc == DET_ENOENT ? 0 : rc;
    JSON_OWN j = json_parse(buf_str(&b), b.len, err);
    id->key = det_strdup(json_str(j, "key", NULL));
    id->cert = det_strdup(json_str(j, "certificate", NULL));
    id->token = det_strdup(json_str(j, "token", NULL));
    explicit_bzero(b.p, b.len);
    if (!id->key)
        rc = det_fail(err, DET_ECORRUPT, "there is no key in it");
    else if (id->cert)
        rc = certkey_dates(id->cert, id->key, &id->dates, err);
    return rc < 0 ? det_wrap(err, DET_ECORRUPT,
                             "%s, this agent's certificate, cannot be read; remove it and join "
                             "anew (det agent join-token)",
                             id->path)
                  : 0;
}

int identity_open(const char *work_dir, struct identity *ret, struct det_err *err)
{
    *ret = (struct identity){0};
    int rc = fsx_mkdirs(AT_FDCWD, work_dir, 0755, err);
    if (rc < 0)
        return det_wrap(err, rc, "--work-dir");
    det_cleanup(freep) char *full = realpath(work_dir, NULL);
    if (!full)
        return det_fail_errno(err, DET_EIO, errno, "--work-dir %s", work_dir);
    ret->path = det_asprintf("%s/identity.json", full);
    ret->authority_path = det_asprintf("%s/authority.pem", full);
    return read_file(ret, err);
}

static int write_file(const struct identity *id, const char *key, const char *cert,
                      const char *token, struct det_err *err)
{
    JSON_OWN j = json_make("{s:s}", "key", key);
    if (cert)
        json_set(j, "certificate", json_string(cert));
    if (token)
        json_set(j, "token", json_string(token));
    char *text = json_text(j);
    int rc = fsx_write_atomic(AT_FDCWD, id->path, text, strlen(text), 0600, err);
    forget_secret(text);
    return rc;
}

static void replace_secret(char **at, const char *text)
{
    char *old = *at;
    *at = det_strdup(text);
    forget_secret(old);
}

int identity_prepare(struct identity *id, const char *key, const char *token, struct det_err *err)
{
    int rc = write_file(id, key, NULL, token, err);
    if (rc < 0)
        return rc;
    replace_secret(&id->key, key);
    replace_secret(&id->cert, NULL);
    replace_secret(&id->token, token);
    return 0;
}

int identity_take(struct identity *id, const char *key, const char *cert, struct det_err *err)
{
    struct cert_dates dates;
    key = key ? key : id->key;
    int rc = certkey_dates(cert, key, &dates, err);
    if (rc < 0)
        return det_wrap(err, rc, "what the master answered");
    rc = write_file(id, key, cert, id->token, err);
    if (rc < 0)
        return rc;
    id->dates = dates;
    if (key != id->key)
        replace_secret(&id->key, key);
    replace_secret(&id->cert, cert);
    return 0;
}

static int follow_succession(const char *path, const char *kept, const char *chain,
                             struct det_err *err)
{
    char was[FINGERPRINT_MAX], is[FINGERPRINT_MAX];
    char *now det_cleanup(freep) = succession_find(kept, chain);
    char *last det_cleanup(freep) = pem_last(chain);
    if (now)
        return fsx_write_atomic(AT_FDCWD, path, now, strlen(now), 0644, err);
    int rc = pem_fingerprint(last ? last : "", is, err);
    if (rc == 0)
        rc = pem_fingerprint(kept, was, err);
    if (rc == 0 && strcmp(was, is) != 0)
        rc =
            det_fail(err, DET_EAUTH,
                     "THE MASTER NAMES ANOTHER AUTHORITY, for which the one that this agent trusts "
                     "does not vouch. It was %s, it is %s, and the first goes on to count here; if "
                     "the master's log says the second, join anew (det agent join-token)",
                     was, is);
    return rc;
}

int identity_follow(const struct identity *id, const char *chain, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf kept = BUF_INIT;
    if (!chain[0])
        return 0;
    int rc = fsx_read_file(AT_FDCWD, id->authority_path, FILE_BYTES_MAX, &kept, err);
    if (rc < 0)
        return rc == DET_ENOENT ? 0 : rc;
    return follow_succession(id->authority_path, buf_str(&kept), chain, err);
}
