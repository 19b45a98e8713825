/* NVML through its stable C interface (no header of NVIDIA's is needed), else the table of
 * nvidia-smi. */
#include "slots.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define NAME_MAX_BYTES  96
#define TABLE_BYTES_MAX 65536

typedef struct nvml_device *nvml_device; /* opaque */
struct nvml {
    void *lib;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned i, nvml_device *ret);
    int (*name)(nvml_device d, char *out, unsigned len);
    int (*uuid)(nvml_device d, char *out, unsigned len);
};

static bool nvml_load(struct nvml *n)
{
    const struct {
        const char *name;
        void *target;
    } symbols[] = {
        {"nvmlInit_v2", &n->init},
        {"nvmlShutdown", &n->shutdown},
        {"nvmlDeviceGetCount_v2", &n->count},
        {"nvmlDeviceGetHandleByIndex_v2", &n->handle},
        {"nvmlDeviceGetName", &n->name},
        {"nvmlDeviceGetUUID", &n->uuid},
    };
    n->lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; n->lib && i < DET_ARRAY_LEN(symbols); i++) {
        void *found = dlsym(n->lib, symbols[i].name);
        if (!found)
            return false;
        memcpy(symbols[i].target, &found, sizeof found);
    }
    return n->lib != NULL;
}

static void add(struct slots *s, int id, const char *name, const char *uuid)
{
    if (s->v.n >= LINK_SLOTS_MAX)
        return;
    struct link_slot slot = {id, LINK_CUDA, det_strdup(name), det_strdup(uuid)};
    vec_push(&s->v, slot);
}

static void add_by_nvml(struct slots *s)
{
    struct nvml n = {0};
    unsigned count = 0;
    if (nvml_load(&n) && n.init() == 0) {
        if (n.count(&count) != 0)
            count = 0;
        for (unsigned i = 0; i < count; i++) {
            nvml_device d;
            char name[NAME_MAX_BYTES] = "", uuid[NAME_MAX_BYTES] = "";
            if (n.handle(i, &d) == 0 && n.name(d, name, sizeof name) == 0 &&
                n.uuid(d, uuid, sizeof uuid) == 0)
                add(s, (int)i, name, uuid);
        }
        n.shutdown();
    }
    if (n.lib)
        dlclose(n.lib);
}

static pid_t spawn_smi(int out)
{
    char *const argv[] = {"nvidia-smi", "--query-gpu=index,name,uuid", "--format=csv,noheader",
                          NULL};
    posix_spawn_file_actions_t fa;
    pid_t pid;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", 1, 0);
    int rc = posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    return rc == 0 ? pid : -1;
}

/* "0, NVIDIA H100 80GB HBM3, GPU-..." */
static void add_line(struct slots *s, char *line)
{
    char *name = strstr(line, ", "), *uuid = name ? strstr(name + 2, ", ") : NULL, *end;
    long id = strtol(line, &end, 10);
    if (!uuid || end != name || id < 0 || id >= LINK_SLOTS_MAX)
        return;
    *uuid = '\0';
    add(s, (int)id, name + 2, uuid + 2);
}

static void add_by_smi(struct slots *s)
{
    int fd[2];
    size_t n = 0;
    ssize_t k;
    if (pipe(fd) < 0)
        return;
    pid_t pid = spawn_smi(fd[1]);
    close(fd[1]);
    det_cleanup(freep) char *text = det_zalloc(TABLE_BYTES_MAX + 1);
    while (n < TABLE_BYTES_MAX && (k = read(fd[0], text + n, TABLE_BYTES_MAX - n)) > 0)
        n += (size_t)k;
    close(fd[0]);
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        return;
    for (char *p = text; *p;) {
        char *end = p + strcspn(p, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        add_line(s, p);
        p = next;
    }
}

void slots_add_gpus(struct slots *s)
{
    add_by_nvml(s);
    if (s->v.n == 0)
        add_by_smi(s);
}
