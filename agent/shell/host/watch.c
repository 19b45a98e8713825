#include "watch.h"

#include "log.h"
#include "mem.h"
#include "storage.h"
#include "thread.h"
#include "vec.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX 64

struct watch {
    struct watches *all; /* NULL: nobody wants to know any more */
    char *place, *id;
    json_t *known;
    bool make, has_user, is_own, owed, again, is_looking;
    struct det_err refusal; /* no account can be chosen: code 0 is none */
    uid_t uid;
    gid_t gid, groups[GROUPS_MAX];
    int groups_n;
    uv_async_t done;
    /* of the thread, until it is done */
    struct link_store now;
    struct storage_seen seen;
    /* what was told last */
    enum link_store_state told_state;
    char told_id[UUID_STR_MAX], told_text[sizeof((struct storage_seen){0}.text)];
    bool told;
};

struct watches {
    uv_loop_t *loop;
    uv_timer_t timer;
    const struct account_rule *accounts;
    VEC(struct watch *) v;
    void (*on_seen)(void *arg, const struct link_store *s);
    void *arg;
};

static_assert((int)STORAGE_SIGHT_COUNT == (int)LINK_STORE_FAILED, "one state for each sight");
static const enum link_store_state states[STORAGE_SIGHT_COUNT] = {
    [STORAGE_ABSENT] = LINK_STORE_ABSENT, [STORAGE_PRESENT] = LINK_STORE_PRESENT,
    [STORAGE_OTHER] = LINK_STORE_OTHER,   [STORAGE_KNOWN] = LINK_STORE_KNOWN,
    [STORAGE_HIDDEN] = LINK_STORE_HIDDEN,
};

/* ---- in the thread ---- */

/* The C library would change all threads; the kernel changes the one that asks, which ends soon. */
static int become_user(const struct watch *w, struct det_err *err)
{
    if (syscall(SYS_setgroups, (size_t)w->groups_n, w->groups) < 0 ||
        syscall(SYS_setresgid, -1, w->gid, -1) < 0 || syscall(SYS_setresuid, -1, w->uid, -1) < 0)
        return det_fail_errno(err, DET_EPERM, errno, "become user %u", (unsigned)w->uid);
    return 0;
}

/* The agent again: what was changed is the effective ids only. */
static void come_back(void)
{
    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, 0, -1) < 0 ||
        syscall(SYS_setgroups, (size_t)0, NULL) < 0)
        abort();
}

static bool is_of(int fd, uid_t uid, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_uid == uid && (st.st_mode & S_IFMT) == type &&
           (type == S_IFDIR || st.st_nlink == 1);
}

/* A store that a user of the range has made is everybody's: the group may add to it, only the owner
 * of what is in it may take that away, and nobody's is the place and the marker. Nothing is given
 * away but what this uid owned, wherever the path leads by now. A file server that does not take
 * root's word leaves them with their maker. */
static void share_store(const struct watch *w)
{
    det_cleanup(det_closep) int fd = open(w->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    det_cleanup(det_closep) int marker =
        fd < 0 ? -1 : openat(fd, STORAGE_MARKER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (marker >= 0 && is_of(marker, w->uid, S_IFREG) && fchown(marker, 0, w->gid) < 0)
        log_info("%s/%s stays its maker's: %s", w->place, STORAGE_MARKER, strerror(errno));
    if (fd >= 0 && is_of(fd, w->uid, S_IFDIR) &&
        (fchown(fd, 0, w->gid) < 0 || fchmod(fd, 03775) < 0))
        log_info("%s stays its maker's: %s", w->place, strerror(errno));
}

/* The store is made as the account of those who will write there. */
static void make_store(struct watch *w)
{
    struct det_err err = w->refusal;
    bool is_other = w->has_user && w->uid != 0 && geteuid() == 0;
    int rc = err.code < 0 ? err.code : is_other ? become_user(w, &err) : 0;
    if (rc == 0)
        rc = storage_make(w->place, w->known, w->seen.id, &err);
    if (is_other)
        come_back();
    if (rc == 0 && w->is_own)
        share_store(w);
    w->now.state = rc < 0 ? LINK_STORE_FAILED : LINK_STORE_PRESENT;
    snprintf(w->seen.text, sizeof w->seen.text, "%.500s", rc < 0 ? err.text : "");
}

static void *look_at_store(void *arg)
{
    struct watch *w = arg;
    if (w->make) {
        make_store(w);
    } else {
        storage_look(w->place, w->id, w->known, &w->seen);
        w->now.state = states[w->seen.sight];
    }
    uv_async_send(&w->done);
    return NULL;
}

/* ---- outside ---- */

static void on_closed(uv_handle_t *h)
{
    struct watch *w = h->data;
    free(w->place);
    free(w->id);
    json_decref(w->known);
    free(w);
}

static void begin_look(struct watch *w)
{
    if (w->is_looking) {
        w->again = w->again || w->owed;
        return;
    }
    w->is_looking = thread_start_detached(look_at_store, w) == 0;
}

static bool is_news(const struct watch *w)
{
    return w->owed || !w->told || w->told_state != w->now.state ||
           strcmp(w->told_id, w->seen.id) != 0 || strcmp(w->told_text, w->seen.text) != 0;
}

static void tell_news(struct watch *w)
{
    if (!is_news(w))
        return;
    w->told = true;
    w->owed = false;
    w->told_state = w->now.state;
    snprintf(w->told_id, sizeof w->told_id, "%s", w->seen.id);
    snprintf(w->told_text, sizeof w->told_text, "%s", w->seen.text);
    w->now.place = w->place;
    w->now.id = w->seen.id[0] ? w->seen.id : NULL;
    w->now.text = w->seen.text;
    if (w->now.state != LINK_STORE_PRESENT)
        log_info("checkpoint store %s: %s", w->place, w->seen.text);
    w->all->on_seen(w->all->arg, &w->now);
}

static void on_done(uv_async_t *a)
{
    struct watch *w = a->data;
    w->is_looking = false;
    if (!w->all) {
        uv_close((uv_handle_t *)a, on_closed);
        return;
    }
    w->make = false; /* once */
    if (!w->again)
        tell_news(w);
    else
        begin_look(w);
    w->again = false;
}

static void drop_watch(struct watch *w)
{
    w->all = NULL;
    if (!w->is_looking)
        uv_close((uv_handle_t *)&w->done, on_closed);
}

static void set_account(struct watch *w, const char *name, uid_t uid, gid_t gid)
{
    w->has_user = true;
    w->uid = uid;
    w->gid = gid;
    w->groups_n = GROUPS_MAX;
    if (!name || getgrouplist(name, gid, w->groups, &w->groups_n) < 0)
        w->groups_n = 0;
}

/* As a task of the same owner would have it. */
static void choose_account(struct watch *w, const json_t *order)
{
    const struct account_rule *rule = w->all->accounts;
    const json_t *user = json_obj(order, "user");
    struct account_wish wish = {.owner = json_int(order, "owner", 0),
                                .is_bound = user != NULL,
                                .uid = json_int(user, "uid", 0),
                                .gid = json_int(user, "gid", 0)};
    struct account a;
    if (!w->make || geteuid() != 0 || account_choose(rule, &wish, &a, &w->refusal) < 0)
        return;
    const struct passwd *pw = a.kind == ACCOUNT_NAMED ? getpwnam(rule->task_user) : NULL;
    if (pw)
        set_account(w, rule->task_user, pw->pw_uid, pw->pw_gid);
    else if (a.kind == ACCOUNT_BOUND)
        set_account(w, json_str(user, "name", NULL), (uid_t)a.uid, (gid_t)a.gid);
    else if (a.kind == ACCOUNT_OWN)
        set_account(w, NULL, (uid_t)a.uid, (gid_t)a.gid);
    w->is_own = a.kind == ACCOUNT_OWN;
    if (a.kind != ACCOUNT_AGENT && !rule->task_user && w->groups_n < GROUPS_MAX)
        w->groups[w->groups_n++] = (gid_t)rule->first;
}

static void remove_place(struct watches *all, const char *place)
{
    for (size_t i = 0; i < all->v.n; i++)
        if (strcmp(all->v.v[i]->place, place) == 0) {
            drop_watch(all->v.v[i]);
            vec_remove(&all->v, i);
            return;
        }
}

void watches_add(struct watches *all, const json_t *order)
{
    struct watch *w = det_zalloc(sizeof *w);
    remove_place(all, json_str(order, "place", ""));
    w->all = all;
    w->place = det_strdup(json_str(order, "place", "/"));
    w->id = det_strdup(json_str(order, "id", NULL));
    w->known = json_arr(order, "known") ? json_deep_copy(json_arr(order, "known")) : NULL;
    w->make = json_flag(order, "make", false);
    w->owed = true;
    choose_account(w, order);
    uv_async_init(all->loop, &w->done, on_done);
    uv_unref((uv_handle_t *)&w->done); /* a look that hangs holds nobody up at the end */
    w->done.data = w;
    vec_push(&all->v, w);
    begin_look(w);
}

void watches_clear(struct watches *all)
{
    for (size_t i = 0; i < all->v.n; i++)
        drop_watch(all->v.v[i]);
    all->v.n = 0;
}

static void on_timer(uv_timer_t *t)
{
    struct watches *all = t->data;
    for (size_t i = 0; i < all->v.n; i++)
        begin_look(all->v.v[i]);
}

struct watches *watches_create(uv_loop_t *loop, const struct account_rule *accounts,
                               void (*on_seen)(void *arg, const struct link_store *s), void *arg)
{
    struct watches *w = det_zalloc(sizeof *w);
    *w = (struct watches){.loop = loop, .accounts = accounts, .on_seen = on_seen, .arg = arg};
    uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    uv_timer_start(&w->timer, on_timer, WATCH_EVERY_MS, WATCH_EVERY_MS);
    return w;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct watches *w = h->data;
    vec_free(&w->v);
    free(w);
}

void watches_close(struct watches *w)
{
    if (!w)
        return;
    watches_clear(w);
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}
