/* det checkpoint download: from the store where this host has it, else through the master. */
#include "checkpoint.h"
#include "show.h"

#include "fsx.h"
#include "tgz.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARCHIVE_MAX ((size_t)640 << 20) /* it is unpacked from memory */

static struct {
    const char *output;
    bool quiet;
} o;
const char *checkpoint_mode = "auto";

int checkpoint_get(struct cli *c, json_t **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *uuid det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    int rc = cli_get(c, &answer, err, "/checkpoints/%s", uuid);
    if (rc < 0)
        return rc;
    *ret = json_incref(json_obj(answer, "checkpoint"));
    json_object_set(*ret, "modelVersions", json_arr(answer, "modelVersions"));
    return 0;
}

struct copy {
    int from, to;
};

static int copy_path(void *arg, const char *path, bool is_dir, uint64_t bytes, struct det_err *err)
{
    struct copy *k = arg;
    if (is_dir)
        return fsx_mkdirs(k->to, path, 0755, err);
    int in det_cleanup(det_closep) = openat(k->from, path, O_RDONLY | O_CLOEXEC);
    int out det_cleanup(det_closep) =
        openat(k->to, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (in < 0 || out < 0)
        return det_fail(err, DET_EIO, "%s: %s", path, strerror(errno));
    int rc = fsx_copy_rest(in, out, err);
    return rc < 0 ? det_wrap(err, rc, "copy %s", path) : 0;
}

static int through_master(struct cli *c, const char *uuid, int to, struct det_err *err)
{
    char *path det_cleanup(freep) = det_asprintf("/checkpoints/%s", uuid);
    struct buf tgz = BUF_INIT;
    int rc = cli_download(c, path, "application/gzip", ARCHIVE_MAX, &tgz, err);
    if (rc == 0)
        rc = archive_extract(buf_str(&tgz), tgz.len, ARCHIVE_MAX, to, err);
    buf_finish(&tgz);
    if (rc == DET_ETOOBIG)
        return det_wrap(err, rc,
                        "det takes %zu MiB through the master: read it from its store, or "
                        "with Checkpoint.download() in Python",
                        ARCHIVE_MAX >> 20);
    return rc;
}

/* A directory of this host; < 0 where there is none, with the reason. */
static int open_store(const json_t *cp, struct det_err *err)
{
    char *dir det_cleanup(freep) = show_checkpoint_place(cp);
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        det_fail(err, DET_ENOENT, "checkpoint %s is at %s, which this host cannot read: %s",
                 json_str(cp, "uuid", ""), dir ? dir : "another store",
                 dir ? strerror(errno) : "it is no directory");
    return fd;
}

static int fetch_checkpoint(struct cli *c, const json_t *cp, int to, struct det_err *err)
{
    const char *uuid = json_str(cp, "uuid", "");
    if (strcmp(checkpoint_mode, "master") == 0)
        return through_master(c, uuid, to, err);
    struct det_err here = {0};
    int from det_cleanup(det_closep) = open_store(cp, &here);
    if (from >= 0)
        return fsx_walk(from, copy_path, &(struct copy){from, to}, err);
    if (strcmp(checkpoint_mode, "direct") == 0) {
        *err = here;
        return DET_ENOENT;
    }
    int rc = through_master(c, uuid, to, err);
    return rc < 0 ? det_wrap(err, rc, "%s; nor does it come through the master", here.text) : 0;
}

static bool is_mode(const char *s)
{
    return strcmp(s, "auto") == 0 || strcmp(s, "direct") == 0 || strcmp(s, "master") == 0;
}

int checkpoint_check_mode(struct det_err *err)
{
    if (is_mode(checkpoint_mode))
        return 0;
    return det_fail(err, DET_EINVAL, "--mode %s: say auto, direct or master", checkpoint_mode);
}

int checkpoint_copy(struct cli *c, const json_t *cp, const char *to, struct det_err *err)
{
    const char *state = show_state(json_str(cp, "state", ""));
    if (strcmp(state, "COMPLETED") != 0 && strcmp(state, "PARTIALLY_DELETED") != 0)
        return det_fail(err, DET_ESTATE,
                        "checkpoint %s is %s: only a COMPLETED or PARTIALLY_DELETED one "
                        "has files to download",
                        json_str(cp, "uuid", ""), state);
    int rc = fsx_mkdirs(AT_FDCWD, to, 0755, err);
    int dest det_cleanup(det_closep) = rc < 0 ? rc : fsx_open_dir(AT_FDCWD, to, err);
    if (dest < 0)
        return dest;
    if ((rc = fetch_checkpoint(c, cp, dest, err)) < 0)
        return rc;
    printf("%s\n", to);
    return 0;
}

int checkpoint_download(struct cli *c, struct det_err *err)
{
    JSON_OWN cp = NULL;
    if (checkpoint_check_mode(err) < 0)
        return CLI_USAGE;
    if (checkpoint_get(c, &cp, err) < 0)
        return CLI_FAILED;
    char *to det_cleanup(freep) =
        o.output ? det_strdup(o.output) : det_asprintf("checkpoints/%s", cli_arg(c, 0));
    return checkpoint_copy(c, cp, to, err) < 0 ? CLI_FAILED : 0;
}

const struct opt checkpoint_download_opts[] = {
    {"output-dir", 'o', OPT_STR, &o.output, "DIR", "where to (default checkpoints/UUID)"},
    {"mode", 0, OPT_STR, &checkpoint_mode, "MODE",
     "direct: from the store; master: through the master; auto: whichever works (default)"},
    {"quiet", 'q', OPT_FLAG, &o.quiet, NULL, "print the path only, as it does anyway"},
    {0},
};
