#include "taskuids.h"

#include "fsx.h"
#include "mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)64 << 20)

const struct taskuids_files taskuids_of_host = {
    .passwd = "/etc/passwd",
    .group = "/etc/group",
    .subuid = "/etc/subuid",
    .subgid = "/etc/subgid",
    .uid_map = "/proc/self/uid_map",
    .gid_map = "/proc/self/gid_map",
};

struct span {
    int64_t first, last;
};

static bool spans_overlap(struct span a, struct span b)
{
    return a.first <= b.last && b.first <= a.last;
}

/* The next line, cut off at its end; NULL after the last one. */
static char *next_line(char **at)
{
    char *line = *at;
    if (!line || !*line)
        return NULL;
    size_t n = strcspn(line, "\n");
    *at = line[n] ? line + n + 1 : line + n;
    line[n] = '\0';
    return line;
}

/* passwd and group: name:x:ID:... */
static bool account_of(const char *line, struct span *ret)
{
    if (sscanf(line, "%*[^:]:%*[^:]:%12" SCNd64 ":", &ret->first) != 1)
        return false;
    ret->last = ret->first;
    return true;
}

/* subuid and subgid: name:FIRST:COUNT */
static bool subordinates_of(const char *line, struct span *ret)
{
    int64_t n = 0;
    if (sscanf(line, "%*[^:]:%12" SCNd64 ":%12" SCNd64, &ret->first, &n) != 2 || n < 1)
        return false;
    ret->last = ret->first + n - 1;
    return true;
}

static int check_file(const char *path, bool (*parse)(const char *line, struct span *ret),
                      struct span range, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (fsx_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &b, NULL) < 0)
        return 0;
    char *at = b.p, *line;
    while ((line = next_line(&at)) != NULL) {
        struct span s;
        if (parse(line, &s) && spans_overlap(s, range))
            return det_fail(err, DET_EINVAL,
                            "%" PRId64 "-%" PRId64 " are not free on this host: %s has \"%.80s\"",
                            range.first, range.last, path, line);
    }
    return 0;
}

/* One line of the map must hold all of them: INSIDE OUTSIDE COUNT. */
static int check_map(const char *path, struct span range, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    if (fsx_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &b, NULL) < 0)
        return 0;
    char *at = b.p, *line;
    while ((line = next_line(&at)) != NULL) {
        int64_t inside = 0, count = 0;
        if (sscanf(line, "%12" SCNd64 " %*s %12" SCNd64, &inside, &count) == 2 &&
            range.first >= inside && range.last < inside + count)
            return 0;
    }
    return det_fail(err, DET_EINVAL,
                    "%" PRId64 "-%" PRId64 " do not exist here: this is a user namespace, and %s "
                    "does not have them",
                    range.first, range.last, path);
}

int taskuids_check(const struct account_rule *r, const struct taskuids_files *f,
                   struct det_err *err)
{
    const struct span uids = {r->first, r->last}, gids = {r->first + 1, r->last};
    int rc = check_map(f->uid_map, uids, err);
    if (rc == 0)
        rc = check_map(f->gid_map, uids, err);
    if (rc == 0)
        rc = check_file(f->passwd, account_of, uids, err);
    if (rc == 0)
        rc = check_file(f->group, account_of, gids, err);
    if (rc == 0)
        rc = check_file(f->subuid, subordinates_of, uids, err);
    if (rc == 0)
        rc = check_file(f->subgid, subordinates_of, uids, err);
    return rc < 0 ? det_wrap(err, rc, "--task-uids") : 0;
}
