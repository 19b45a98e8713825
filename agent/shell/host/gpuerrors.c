#include "gpuerrors.h"

#include "fsx.h"
#include "json.h"
#include "log.h"
#include "mem.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20 };

struct gpuerrors {
    char *path, *boot; /* boot: of the host */
    json_t *gpus;      /* uuid -> {xid, energy_mj} */
};

static char *boot_of_host(void)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (fsx_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, &b, NULL) < 0)
        return det_strdup("");
    return det_strndup(buf_str(&b), strcspn(buf_str(&b), "\n"));
}

static int read_file(struct gpuerrors *e, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    int rc = fsx_read_file(AT_FDCWD, e->path, FILE_BYTES_MAX, &b, err);
    if (rc < 0)
        return rc;
    JSON_OWN j = json_parse(buf_str(&b), b.len, err);
    if (j && json_obj(j, "gpus") && strcmp(json_str(j, "boot", ""), e->boot) == 0)
        json_object_update(e->gpus, json_obj(j, "gpus"));
    return j ? 0 : DET_ECORRUPT;
}

struct gpuerrors *gpuerrors_open(const char *work_dir)
{
    struct gpuerrors *e = det_zalloc(sizeof *e);
    struct det_err err = {0};
    e->path = det_asprintf("%s/gpu-errors.json", work_dir);
    e->boot = boot_of_host();
    e->gpus = json_object();
    if (access(e->path, F_OK) == 0 && read_file(e, &err) < 0)
        log_warning("what took GPUs out before is not known: %s: %s", e->path, err.text);
    return e;
}

void gpuerrors_close(struct gpuerrors *e)
{
    if (!e)
        return;
    json_decref(e->gpus);
    free(e->path);
    free(e->boot);
    free(e);
}

static void save_errors(const struct gpuerrors *e)
{
    struct det_err err;
    JSON_OWN j = json_make("{s:s, s:O}", "boot", e->boot, "gpus", e->gpus);
    det_cleanup(freep) char *text = json_text(j);
    if (fsx_write_atomic(AT_FDCWD, e->path, text, strlen(text), 0600, &err) < 0)
        log_warning("an error of a GPU will be forgotten when the agent ends: %s", err.text);
}

void gpuerrors_put(struct gpuerrors *e, const char *uuid, unsigned xid, uint64_t energy_mj)
{
    json_set(e->gpus, uuid,
             json_make("{s:I, s:I}", "xid", (json_int_t)xid, "energy_mj", (json_int_t)energy_mj));
    save_errors(e);
}

unsigned gpuerrors_get(struct gpuerrors *e, const char *uuid, uint64_t energy_mj)
{
    const json_t *gpu = json_obj(e->gpus, uuid);
    int64_t xid = json_int(gpu, "xid", 0);
    int64_t then_mj = json_int(gpu, "energy_mj", 0);
    if (xid <= 0 || xid > INT_MAX)
        return 0;
    if (energy_mj == 0 || then_mj <= 0 || energy_mj >= (uint64_t)then_mj)
        return (unsigned)xid;
    log_info("GPU %s was reset since its XID %u", uuid, (unsigned)xid);
    json_object_del(e->gpus, uuid);
    save_errors(e);
    return 0;
}
