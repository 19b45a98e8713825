#include "life.h"

#include "fsx.h"
#include "log.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 4096 };

struct life {
    char *path;
    json_t *known; /* a link_life_json(), or NULL */
    bool is_new;   /* not on disk */
};

static int read_file(struct life *l, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    struct link_life known;
    int rc = fsx_read_file(AT_FDCWD, l->path, FILE_BYTES_MAX, &b, err);
    if (rc == 0)
        l->known = json_parse(buf_str(&b), b.len, err);
    if (rc == 0 && (!l->known || link_life_decode(l->known, &known, err) < 0))
        rc = det_wrap(err, DET_ECORRUPT,
                      "%s, which says what cluster this agent serves, cannot be read; remove it if "
                      "no database was restored lately",
                      l->path);
    return rc;
}

int life_open(const char *work_dir, struct life **ret, struct det_err *err)
{
    struct life *l = *ret = det_zalloc(sizeof *l);
    l->path = det_asprintf("%s/life.json", work_dir);
    return access(l->path, F_OK) < 0 ? 0 : read_file(l, err);
}

static int write_file(struct life *l, struct det_err *err)
{
    det_cleanup(freep) char *text = json_text(l->known);
    int rc = fsx_write_atomic(AT_FDCWD, l->path, text, strlen(text), 0600, err);
    if (rc == 0)
        l->is_new = false;
    return rc;
}

void life_sync(struct life *l)
{
    struct det_err err;
    if (l->is_new && write_file(l, &err) < 0)
        log_warning("what was heard of the master is not on disk: %s", err.text);
}

void life_close(struct life *l)
{
    if (!l)
        return;
    life_sync(l);
    json_decref(l->known);
    free(l->path);
    free(l);
}

json_t *life_seen(const struct life *l)
{
    return json_incref(l->known);
}

/* The master has judged what we have seen of its own cluster; of others it knows nothing. */
static int judge_life(const struct life *l, const struct link_ack *a, bool has_tasks,
                      struct det_err *err)
{
    if (!l->known)
        return 0;
    if (!a->has_life)
        return det_fail(err, DET_ESTATE,
                        "the master does not say which life of the cluster it serves: it is older "
                        "than this agent; upgrade it");
    const char *mine = json_str(l->known, "cluster", "");
    if (strcmp(mine, a->life.cluster) == 0 || !has_tasks)
        return 0;
    return det_fail(
        err, DET_ESTATE,
        "the master serves cluster %s, and this agent has tasks of cluster %s: end them "
        "with det-agent --end-tasks before it may serve another cluster",
        a->life.cluster, mine);
}

/* Of ids the highest: people have seen them, whatever became of that life. */
static json_t *merge_lives(const struct life *l, const struct link_life *now)
{
    struct link_life sum = *now, old;
    if (l->known && link_life_decode(l->known, &old, NULL) == 0 &&
        strcmp(old.cluster, now->cluster) == 0) {
        sum.exp = old.exp > sum.exp ? old.exp : sum.exp;
        sum.trial = old.trial > sum.trial ? old.trial : sum.trial;
    }
    return link_life_json(&sum);
}

static bool is_same_leader(const struct life *l, const struct link_life *now)
{
    return l->known && strcmp(json_str(l->known, "cluster", ""), now->cluster) == 0 &&
           strcmp(json_str(l->known, "nonce", ""), now->nonce) == 0 &&
           json_int(l->known, "epoch", 0) == now->epoch;
}

int life_take(struct life *l, const struct link_ack *a, bool has_tasks, struct det_err *err)
{
    int rc = judge_life(l, a, has_tasks, err);
    if (rc < 0 || !a->has_life)
        return rc;
    bool same = is_same_leader(l, &a->life);
    json_t *now = merge_lives(l, &a->life);
    l->is_new |= !l->known || !json_equal(now, l->known);
    json_decref(l->known);
    l->known = now;
    return same ? 0 : write_file(l, err);
}
