/* NVML through its stable C interface (no header of NVIDIA's is needed), else the list of
 * nvidia-smi. A GPU that MIG divides is no slot itself: whoever is given it gets one of its
 * instances, and everybody the same one. */
#include "gpus.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mem.h"
#include "nvml.h"
#include "thread.h"

extern char **environ;

#define NAME_MAX_BYTES 96
#define LIST_BYTES_MAX 65536
#define MIG_ENABLED    1

/* number: of its GPU. whole_uuid: NULL for a GPU itself. */
static void add_gpu(struct gpus *g, int number, const char *name, const char *uuid,
                    const char *whole_uuid)
{
    struct gpu gpu = {.id = g->next_id++,
                      .number = number,
                      .name = det_strdup(name),
                      .uuid = det_strdup(uuid),
                      .whole_uuid = det_strdup(whole_uuid ? whole_uuid : uuid),
                      .island = -1,
                      .numa = -1};
    vec_push(&g->v, gpu);
}

/* ---- NVML ---- */

struct texts {
    char name[NAME_MAX_BYTES], uuid[NAME_MAX_BYTES];
};

static bool read_texts(const struct nvml *n, nvml_device d, struct texts *ret)
{
    return n->name(d, ret->name, sizeof ret->name) == 0 &&
           n->uuid(d, ret->uuid, sizeof ret->uuid) == 0;
}

static bool is_divided(const struct nvml *n, nvml_device d)
{
    unsigned now = 0, pending = 0;
    return n->mig_mode && n->mig_most && n->mig_handle && n->mig_mode(d, &now, &pending) == 0 &&
           now == MIG_ENABLED;
}

static void add_instances(struct gpus *g, const struct nvml *n, nvml_device whole, unsigned number,
                          const char *whole_uuid)
{
    unsigned most = 0;
    nvml_device d;
    struct texts t;
    if (n->mig_most(whole, &most) != 0)
        return;
    for (unsigned i = 0; i < most; i++) /* places without an instance say "not found" */
        if (n->mig_handle(whole, i, &d) == 0 && read_texts(n, d, &t))
            add_gpu(g, (int)number, t.name, t.uuid, whole_uuid);
}

static void add_by_nvml(struct gpus *g)
{
    struct nvml n = {0};
    unsigned count = 0;
    if (nvml_load(&n) == 0 && n.init() == 0) {
        if (n.count(&count) != 0)
            count = 0;
        for (unsigned i = 0; i < count; i++) {
            nvml_device d;
            struct texts t;
            if (n.handle(i, &d) != 0 || !read_texts(&n, d, &t))
                g->next_id++; /* fell off the bus, say: those after it keep their numbers */
            else if (is_divided(&n, d))
                add_instances(g, &n, d, i, t.uuid);
            else
                add_gpu(g, (int)i, t.name, t.uuid, NULL);
        }
        gpus_neighbours(g, &n);
        n.shutdown();
    }
    nvml_unload(&n);
}

/* ---- nvidia-smi ---- */

static pid_t spawn_smi(int out)
{
    char *const argv[] = {"nvidia-smi", "-L", NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none; /* of ours, which are all blocked, it would be deaf to SIGTERM */
    pid_t pid;
    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", 1, 0);
    int rc = posix_spawnp(&pid, argv[0], &fa, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&attr);
    return rc == 0 ? pid : -1;
}

/* The instances that follow a GPU take its place. */
static void add_instance(struct gpus *g, const char *profile, const char *uuid)
{
    if (g->v.n == 0)
        return;
    struct gpu *last = &g->v.v[g->v.n - 1];
    if (strcmp(last->uuid, last->whole_uuid) != 0) { /* an instance too: its name has its profile */
        char *end = strstr(last->name, " MIG ");
        det_cleanup(freep) char *name =
            det_asprintf("%.*s %s", end ? (int)(end - last->name) : 0, last->name, profile);
        add_gpu(g, last->number, name, uuid, last->whole_uuid);
        return;
    }
    char *name = det_asprintf("%s %s", last->name, profile);
    free(last->name);
    free(last->uuid);
    last->name = name;
    last->uuid = det_strdup(uuid);
}

/* "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)", "  MIG 1g.10gb     Device  0: (UUID: MIG-...)" */
static void add_line(struct gpus *g, char *line)
{
    char *uuid = strstr(line, " (UUID: "), *end, profile[32];
    if (!uuid)
        return;
    *uuid = '\0';
    uuid += strlen(" (UUID: ");
    uuid[strcspn(uuid, ")")] = '\0';
    if (sscanf(line, " MIG %26s", profile) == 1) {
        det_cleanup(freep) char *mig = det_asprintf("MIG %s", profile);
        add_instance(g, mig, uuid);
    } else if (strncmp(line, "GPU ", 4) == 0) {
        long number = strtol(line + 4, &end, 10);
        if (end != line + 4 && strncmp(end, ": ", 2) == 0 && number >= 0 && number < LIST_BYTES_MAX)
            add_gpu(g, (int)number, end + 2, uuid, NULL);
    }
}

static void add_by_smi(struct gpus *g)
{
    int fd[2];
    size_t n = 0;
    ssize_t k;
    if (pipe(fd) < 0)
        return;
    pid_t pid = spawn_smi(fd[1]);
    close(fd[1]);
    det_cleanup(freep) char *text = det_zalloc(LIST_BYTES_MAX + 1);
    while (n < LIST_BYTES_MAX && (k = read(fd[0], text + n, LIST_BYTES_MAX - n)) > 0)
        n += (size_t)k;
    close(fd[0]);
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        return;
    for (char *p = text; *p;) {
        char *end = p + strcspn(p, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        add_line(g, p);
        p = next;
    }
}

/* ---- for so long, and no longer ---- */

/* Whoever comes last frees it: the thread is left behind while the driver hangs. */
struct search {
    pthread_mutex_t lock;
    pthread_cond_t end;
    struct gpus found;
    bool is_done, is_left;
};

static void search_free(struct search *s)
{
    gpus_finish(&s->found);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->end);
    free(s);
}

static void *search_gpus(void *arg)
{
    struct search *s = arg;
    struct gpus found = {0};
    add_by_nvml(&found);
    if (found.v.n == 0)
        add_by_smi(&found);
    pthread_mutex_lock(&s->lock);
    s->found = found;
    s->is_done = true;
    bool is_left = s->is_left;
    pthread_cond_signal(&s->end);
    pthread_mutex_unlock(&s->lock);
    if (is_left)
        search_free(s);
    return NULL;
}

static struct search *begin_search(struct det_err *err)
{
    struct search *s = det_zalloc(sizeof *s);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->end, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&s->lock, NULL);
    int rc = thread_start_detached(search_gpus, s);
    if (rc == 0)
        return s;
    search_free(s);
    det_ignore(det_fail_errno(err, DET_ENOMEM, rc, "a thread to look for GPUs"), "told by NULL");
    return NULL;
}

static bool wait_for(struct search *s, unsigned timeout_ms, struct gpus *ret)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += timeout_ms / 1000;
    t.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&s->lock);
    while (!s->is_done && pthread_cond_timedwait(&s->end, &s->lock, &t) == 0)
        ;
    bool is_done = s->is_done;
    s->is_left = !is_done;
    *ret = s->found;
    s->found = (struct gpus){0};
    pthread_mutex_unlock(&s->lock);
    if (is_done)
        search_free(s);
    return is_done;
}

int gpus_find(struct gpus *ret, unsigned timeout_ms, struct det_err *err)
{
    *ret = (struct gpus){0};
    struct search *s = begin_search(err);
    if (!s)
        return DET_ENOMEM;
    if (wait_for(s, timeout_ms, ret))
        return 0;
    return det_fail(
        err, DET_ETIMEOUT,
        "the driver of the GPUs has not answered for %u s (NVML, nvidia-smi): dmesg may "
        "say why; --slots N begins without them",
        timeout_ms / 1000);
}
