#include "run_resume.h"

#include "fsx.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define METADATA_MAX ((size_t)64 << 20)

static int steps_of(const char *dir, const char *uuid, int64_t *ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    det_cleanup(freep) char *path = det_asprintf("%s/%s/metadata.json", dir, uuid);
    int rc = fsx_read_file(AT_FDCWD, path, METADATA_MAX, &text, err);
    if (rc < 0)
        return rc;
    JSON_OWN meta = json_parse(buf_str(&text), text.len, err);
    *ret = json_int(meta, "steps_completed", -1);
    if (*ret < 0)
        return det_fail(err, DET_ECORRUPT, "%s does not tell steps_completed", path);
    return 0;
}

/* checkpoint_dir must be the parent of the directory named, or becomes it. */
static int take_directory(struct det_loop_config *c, const char *from, struct det_err *err)
{
    char whole[PATH_MAX], given[PATH_MAX];
    if (!realpath(from, whole))
        return det_fail_errno(err, DET_ENOENT, errno, "checkpoint %s", from);
    char *name = strrchr(whole, '/');
    *name++ = '\0';
    if (c->checkpoint_dir && (!realpath(c->checkpoint_dir, given) || strcmp(given, whole) != 0))
        return det_fail(err, DET_EINVAL,
                        "the checkpoint %s is not in the directory %s where new ones are to go: "
                        "name its own directory, or none",
                        from, c->checkpoint_dir);
    free(c->checkpoint_dir);
    c->checkpoint_dir = det_strdup(whole);
    c->latest_checkpoint = det_strdup(name);
    return 0;
}

int run_resume(struct det_loop_config *c, const char *from, struct det_err *err)
{
    int rc = 0;
    free(c->latest_checkpoint);
    c->latest_checkpoint = NULL;
    c->steps_completed = 0;
    if (!from)
        return 0;
    if (strchr(from, '/'))
        rc = take_directory(c, from, err);
    else
        c->latest_checkpoint = det_strdup(from);
    if (rc < 0)
        return rc;
    det_cleanup(freep) char *root = loop_local_root(c);
    return steps_of(root, c->latest_checkpoint, &c->steps_completed, err);
}
