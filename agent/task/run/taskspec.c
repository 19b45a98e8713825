#include "taskspec.h"

#include "fsx.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPEC_BYTES_MAX ((size_t)64 << 20)
#define CPU_WEIGHT     100 /* of a slot: the kernel's own */
#define CPU_WEIGHT_MAX 10000

static int read_spec(struct taskspec *s, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    int rc = fsx_read_file(s->dirfd, "spec.json", SPEC_BYTES_MAX, &b, err);
    if (rc < 0)
        return rc;
    s->json = json_parse(buf_str(&b), b.len, err);
    if (!s->json)
        return det_wrap(err, DET_ECORRUPT, "%s/spec.json", s->dir);
    const json_t *agent = json_obj(s->json, "agent");
    s->alloc = json_str(s->json, "alloc", NULL);
    s->container = json_str(s->json, "container", NULL);
    s->agent_id = json_str(agent, "id", "");
    s->addr = json_str(agent, "addr", "127.0.0.1");
    s->master = json_str(agent, "master", NULL);
    s->ca_file = json_str(agent, "ca_file", NULL);
    s->cert_name = json_str(agent, "cert_name", NULL);
    s->accounts.task_user = json_str(agent, "task_user", NULL);
    s->threads_per_slot = (int)json_int(agent, "threads_per_slot", 1);
    int64_t log_mib = json_int(agent, "log_mib", 0);
    s->log_bytes_max = log_mib > 0 ? (uint64_t)log_mib << 20 : 0;
    s->slots = json_arr(agent, "slots");
    s->hide = json_arr(agent, "hide");
    rc = account_range_parse(json_str(agent, "task_uids", ACCOUNT_RANGE_TEXT), &s->accounts.first,
                             &s->accounts.last, err);
    if (rc < 0)
        return det_wrap(err, rc, "%s/spec.json", s->dir);
    if (!link_id_is_valid(s->alloc) || !link_id_is_valid(s->container) || !s->master)
        return det_fail(err, DET_ECORRUPT, "%s/spec.json: alloc, container or master is missing",
                        s->dir);
    return link_spec_decode(json_object_get(s->json, "task"), &s->task, err);
}

/* Those of its name, and the one that all share. One of the range has no name to be looked up,
 * which may take long where a directory service is asked. */
static void set_groups(struct taskspec *s)
{
    int room = 0;
    s->groups_n = s->account == ACCOUNT_OWN ? 0 : 64;
    do { /* with too little room it says how much it needs */
        room = s->groups_n;
        s->groups = det_reallocarray(s->groups, (size_t)room + 1, sizeof *s->groups);
    } while (room > 0 && getgrouplist(s->user_name, s->gid, s->groups, &s->groups_n) < 0 &&
             s->groups_n > room);
    if (!s->accounts.task_user)
        s->groups[s->groups_n++] = (gid_t)s->accounts.first;
}

static void set_home(struct taskspec *s, const struct passwd *pw)
{
    struct stat st;
    bool usable = pw && pw->pw_dir && stat(pw->pw_dir, &st) == 0 && S_ISDIR(st.st_mode) &&
                  st.st_uid == s->uid;
    s->home = usable ? det_strdup(pw->pw_dir) : det_asprintf("%s/work", s->dir);
}

static int set_ids(struct taskspec *s, const struct account *a, struct det_err *err)
{
    const struct passwd *pw = NULL;
    s->account = a->kind;
    if (a->kind == ACCOUNT_BOUND || a->kind == ACCOUNT_OWN) {
        s->uid = (uid_t)a->uid;
        s->gid = (gid_t)a->gid;
    } else if (a->kind == ACCOUNT_NAMED) {
        const char *name = s->accounts.task_user;
        errno = 0;
        pw = getpwnam(name);
        if (!pw)
            return det_fail(err, DET_ENOENT,
                            "the agent's task user '%s' does not exist: make it with "
                            "useradd --system %s, or start the agent with another --task-user, or "
                            "without, so that each user has a uid of its own",
                            name, name);
        s->uid = pw->pw_uid;
        s->gid = pw->pw_gid;
    }
    return 0;
}

static int choose_user(struct taskspec *s, struct det_err *err)
{
    struct account a = {.kind = ACCOUNT_AGENT};
    const struct account_wish wish = {s->task.owner, s->task.has_user, s->task.uid, s->task.gid};
    s->uid = geteuid();
    s->gid = getegid();
    int rc = s->uid == 0 ? account_choose(&s->accounts, &wish, &a, err) : 0;
    if (rc == 0)
        rc = set_ids(s, &a, err);
    if (rc < 0)
        return rc;
    s->switch_user = geteuid() == 0 && s->uid != 0;
    const struct passwd *pw = s->account == ACCOUNT_OWN ? NULL : getpwuid(s->uid);
    s->user_name = pw                            ? det_strdup(pw->pw_name)
                   : s->account == ACCOUNT_BOUND ? det_strdup(s->task.user_name)
                   : s->account == ACCOUNT_OWN   ? det_asprintf("det%lld", (long long)s->task.owner)
                                                 : det_strdup("det");
    set_home(s, pw);
    if (s->switch_user)
        set_groups(s);
    return 0;
}

bool taskspec_is_kept_apart(const struct taskspec *s)
{
    return !s->accounts.task_user || *s->accounts.task_user;
}

/* What lies there is loaded into processes. Where people have uids of their own, a folder's owner
 * tells whose it is. */
static void choose_cache(struct taskspec *s)
{
    const char *dir = getenv("DET_CACHE_DIR");
    bool is_shared_uid = geteuid() != 0 && taskspec_is_kept_apart(s);
    if (dir && *dir == '/')
        s->cache = is_shared_uid ? det_asprintf("%s/user-%lld", dir, (long long)s->task.owner)
                                 : det_strdup(dir);
}

/* For each slot as much as the agent was told; a task of none has one's. The uid, which others of
 * the same person's tasks have too, may have what a task on all slots would. */
static void choose_limits(struct taskspec *s)
{
    const json_t *agent = json_obj(s->json, "agent");
    int64_t slots = s->task.slots_n > 0 ? (int64_t)s->task.slots_n : 1;
    int64_t all = (int64_t)json_array_size(s->slots);
    int64_t pids = json_int(agent, "slot_pids", 0);
    s->cgroup_dir = json_str(agent, "cgroup", NULL);
    s->limits.memory_bytes = (json_int(agent, "slot_memory_mib", 0) << 20) * slots;
    s->limits.pids = pids * slots;
    s->limits.cpu_weight =
        (int)(slots < CPU_WEIGHT_MAX / CPU_WEIGHT ? CPU_WEIGHT * slots : CPU_WEIGHT_MAX);
    s->uid_pids = pids * (all > slots ? all : slots);
}

/* By the directory, which no other task of this host has. */
static void name_processes(struct taskspec *s)
{
    char hex[HASH_HEX_MAX];
    hash_bytes(HASH_SHA256, s->dir, strlen(s->dir), hex);
    s->cgroup_name = det_strndup(hex, 32);
    s->mark = det_asprintf("DET_WORKDIR=%s/work", s->dir);
}

int taskspec_load(const char *dir, struct taskspec *ret, struct det_err *err)
{
    char real[PATH_MAX];
    *ret = (struct taskspec){.dirfd = -1};
    if (!realpath(dir, real))
        return det_fail_errno(err, DET_ENOENT, errno, "%s", dir);
    ret->dir = det_strdup(real);
    name_processes(ret);
    ret->dirfd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->dirfd < 0)
        return det_fail_errno(err, DET_EIO, errno, "open %s", real);
    int rc = read_spec(ret, err);
    if (rc == 0) {
        choose_cache(ret);
        choose_limits(ret);
    }
    if (rc == 0 && choose_user(ret, &ret->refusal) == 0)
        ret->refusal.code = 0;
    return rc;
}

void taskspec_finish(struct taskspec *s)
{
    link_spec_finish(&s->task);
    json_decref(s->json);
    free(s->dir);
    free(s->mark);
    free(s->cgroup_name);
    free(s->cache);
    free(s->user_name);
    free(s->home);
    free(s->groups);
    det_closep(&s->dirfd);
    *s = (struct taskspec){.dirfd = -1};
}

static int ranks_of(int slots)
{
    return slots > 0 ? slots : 1;
}

int taskspec_world_size(const struct taskspec *s)
{
    int n = 0;
    for (int i = 0; i < s->task.nodes; i++)
        n += ranks_of(s->task.slot_counts[i]);
    return n;
}

int taskspec_first_rank(const struct taskspec *s)
{
    int n = 0;
    for (int i = 0; i < s->task.node; i++)
        n += ranks_of(s->task.slot_counts[i]);
    return n;
}

int taskspec_local_size(const struct taskspec *s)
{
    return ranks_of((int)s->task.slots_n);
}

const json_t *taskspec_slot(const struct taskspec *s, size_t i)
{
    for (size_t k = 0; i < s->task.slots_n && k < json_array_size(s->slots); k++)
        if (json_int(json_array_get(s->slots, k), "id", -1) == s->task.slots[i])
            return json_array_get(s->slots, k);
    return NULL;
}

int taskspec_user_enter(const struct taskspec *s, struct det_err *err)
{
    if (!s->switch_user)
        return 0;
    if (setgroups((size_t)s->groups_n, s->groups) < 0 || setegid(s->gid) < 0 ||
        seteuid(s->uid) < 0) {
        int e = errno;
        taskspec_user_leave(s);
        return det_fail_errno(err, DET_EPERM, e, "become user %s", s->user_name);
    }
    return 0;
}

void taskspec_user_leave(const struct taskspec *s)
{
    if (!s->switch_user)
        return;
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
        abort(); /* a root that cannot come back must do nothing more */
}
