/* Where checkpoints are: opened once, and tried before anything is built that could be lost. */
#include "clk.h"
#include "fsx.h"
#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *named_root(const struct det_loop_config *c)
{
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (c->checkpoint_dir)
        return det_strdup(c->checkpoint_dir);
    if (xdg && *xdg)
        return det_asprintf("%s/determined", xdg);
    return det_asprintf("%s/.local/share/determined", home && *home ? home : ".");
}

char *loop_local_root(const struct det_loop_config *c)
{
    char *root = named_root(c), whole[PATH_MAX];
    struct det_err err;
    if (root[0] == '/' && !strstr(root, ".."))
        return root;
    /* Stores take absolute paths only; and a folder must be there to be asked for its own. */
    if (fsx_mkdirs(AT_FDCWD, root, 0777, &err) < 0 || !realpath(root, whole))
        return root;
    free(root);
    return det_strdup(whole);
}

int loop_open_storage(struct loop *l, struct det_err *err)
{
    if (l->storage)
        return 0;
    if (l->c->managed)
        return storage_open_store(l->c->checkpoint_storage, l->c->store_id, &l->storage, err);
    det_cleanup(freep) char *root = loop_local_root(l->c);
    JSON_OWN j = json_make("{s:s, s:s}", "type", "directory", "container_path", root);
    return storage_open(j, &l->storage, err);
}

/* The system's number says more than our codes do. */
static const struct remedy {
    int number;
    bool is_short; /* of what only writing uses up */
    const char *words;
} remedies[] = {
    {EACCES, false, "it must be able to write there"},
    {EPERM, false, "it must be able to write there"},
    {EROFS, false, "that file system is mounted read-only"},
    {ENOSPC, true, "make room there (df and df -i say what is short)"},
    {EDQUOT, true, "its quota there is used up"},
    {EFBIG, true, "its limit on the size of files is too low (ulimit -f)"},
    {ENOENT, false, "that folder cannot be made"},
    {ENOTDIR, false, "a part of that path is a file"},
    {EEXIST, false, "a part of that path is a file"},
    {ESTALE, false, "that mount is broken; mount it again"},
    {EIO, true, "that disk fails; the kernel's log (dmesg) says how"},
};

static const struct remedy *find_remedy(const struct det_err *err)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(remedies); i++)
        if (err->sys == remedies[i].number)
            return &remedies[i];
    return NULL;
}

bool loop_storage_is_short(const struct det_err *err)
{
    const struct remedy *r = find_remedy(err);
    return r && r->is_short;
}

static bool is_full(const struct det_err *err)
{
    return err->sys == ENOSPC || err->sys == EDQUOT;
}

void loop_storage_saw(struct loop *l, const struct det_err *err)
{
    if (is_full(err))
        l->store_was_full = true;
}

int loop_storage_failed(struct loop *l, int rc, struct det_err *err)
{
    struct det_err was = *err;
    const char *other = l->c->managed ? "checkpoint_storage in the experiment's configuration"
                                      : "--checkpoint-dir, checkpoint_dir or XDG_DATA_HOME";
    const struct remedy *r = find_remedy(err);
    loop_storage_saw(l, err);
    if (!r || rc == DET_EUNAVAIL)
        return rc;
    det_fail(err, rc, "%s (as user %u): %s; another place is named by %s", was.text,
             (unsigned)geteuid(), r->words, other);
    err->sys = was.sys;
    return rc;
}

int loop_check_storage(struct loop *l, struct det_err *err)
{
    struct loop_agreed a = {0};
    if (l->chief) {
        struct det_err e = {0};
        loop_alive_disk(true);
        int rc = loop_open_storage(l, &e);
        if (rc == 0)
            rc = storage_check(l->storage, &e);
        loop_alive_disk(false);
        if (rc < 0)
            det_wrap(&e, loop_storage_failed(l, rc, &e), "checkpoints cannot be kept");
        loop_agreed_fail(&a, rc, &e);
    }
    return loop_agree(l, &a, err);
}

/* ---- A store that is away -------------------------------------------------------------------- */

#define HOLD_MS      (10 * 60 * 1000)
#define HOLD_TICK_MS 200

static int find_store(struct loop *l, struct det_err *err)
{
    int rc = loop_open_storage(l, err);
    return rc < 0 ? rc : storage_writable(l->storage, err);
}

/* Waiting for a mount is not being stuck, and what was trained is not thrown away for it. */
int loop_storage_await(struct loop *l, struct det_err *err)
{
    int64_t hold_ms = l->c->store_hold_ms ? l->c->store_hold_ms : HOLD_MS;
    int64_t until_ms = clk_mono_ms() + hold_ms;
    int rc = find_store(l, err);
    if (rc != DET_EUNAVAIL)
        return rc;
    l->store_was_away = true;
    log_warning("%s; training holds until it is back, for %lld s at most", err->text,
                (long long)((hold_ms + 999) / 1000));
    while (rc == DET_EUNAVAIL && clk_mono_ms() < until_ms) {
        usleep(HOLD_TICK_MS * 1000);
        loop_alive_again();
        rc = find_store(l, err);
    }
    if (rc == 0) {
        l->store_was_away = false;
        log_info("checkpoint store %s is back; training goes on", storage_root(l->storage));
    }
    return rc;
}

void loop_storage_note(struct loop *l, int rc, const struct det_err *why)
{
    struct det_err err = {0};
    if (rc >= 0 || rc == DET_ESTALE || rc == DET_EINVALIDHP || !l->c->store_id)
        return;
    if (find_store(l, &err) == DET_EUNAVAIL)
        storage_note_away(err.text);
    else if (l->store_was_full && is_full(why)) /* somebody has to make room: no fault of ours */
        storage_note_away(why->text);
    else if (l->store_was_away)
        storage_note_away("the checkpoint store was away for too long");
}
