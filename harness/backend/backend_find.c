/* Finds a backend by its device's name: the built-in ones, then modules on disk. */
#include "backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cpu.h"
#include "mem.h"
#include "ref.h"

const char *det_kernel_name(enum det_kernel k)
{
    static const char *const names[DET_KERNEL_COUNT] = {
#define X(NAME, name) #name,
        DET_KERNELS(X)
#undef X
    };
    return (unsigned)k < DET_KERNEL_COUNT ? names[k] : "unknown";
}

/* Splits "cuda:1"; a name is letters, so that it can be part of a file name. */
static int split(const char *device, char *name, size_t n, int *ret_index, struct det_err *err)
{
    size_t len = strspn(device, "abcdefghijklmnopqrstuvwxyz");
    long index = 0;
    char *end = NULL;
    if (device[len] == ':')
        index = strtol(device + len + 1, &end, 10);
    if (len == 0 || len >= n || (device[len] && (device[len] != ':' || end == device + len + 1)) ||
        (end && *end) || index < 0 || index > 1023)
        return det_fail(err, DET_EINVAL,
                        "device \"%.40s\": give a name such as \"cpu\", \"cuda\" or \"cuda:1\"",
                        device);
    memcpy(name, device, len);
    name[len] = '\0';
    *ret_index = (int)index;
    return 0;
}

/* The table of an opened module; the module stays loaded, as its table lives in it. */
static int table_of(void *module, const char *path, const struct det_backend **ret,
                    struct det_err *err)
{
    det_backend_get_fn *get = NULL;
    *(void **)&get = dlsym(module, DET_BACKEND_SYMBOL);
    const struct det_backend *b = get ? get(DET_BACKEND_VERSION) : NULL;
    if (!b || b->version != DET_BACKEND_VERSION)
        return det_fail(err, DET_EINVAL,
                        "%s is not a backend of version %d: build it with this program", path,
                        DET_BACKEND_VERSION);
    *ret = b;
    return 0;
}

/* 1: loaded; 0: there is no such file; negative: it is there and cannot be used. */
static int try_module(const char *dir, const char *sub, const char *name,
                      const struct det_backend **ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf path = BUF_INIT;
    buf_addf(&path, "%s%s/det_backend_%s.so", dir, sub, name);
    if (access(buf_str(&path), R_OK) < 0)
        return 0;
    void *module = dlopen(buf_str(&path), RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return det_fail(err, DET_EUNAVAIL, "load %s: %s", buf_str(&path), dlerror());
    int rc = table_of(module, buf_str(&path), ret, err);
    return rc < 0 ? rc : 1;
}

static int load_module(const char *name, const struct det_backend **ret, struct det_err *err)
{
    const char *given = getenv("DET_BACKEND_DIR");
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    int rc = given ? try_module(given, "", name, ret, err) : 0;
    if (rc == 0 && slash)
        rc = try_module(self, "", name, ret, err);
    if (rc == 0 && slash)
        rc = try_module(self, "/../lib/det", name, ret, err);
    if (rc == 0)
        return det_fail(
            err, DET_ENOENT,
            "there is no backend \"%s\" (det_backend_%s.so is not in DET_BACKEND_DIR, beside "
            "the program or in ../lib/det): use the device \"cpu\" or build that module",
            name, name);
    return rc < 0 ? rc : 0;
}

int det_backend_find(const char *device, const struct det_backend **ret, int *ret_index,
                     struct det_err *err)
{
    static const struct det_backend *const built_in[] = {&det_backend_cpu, &det_backend_ref};
    char name[32];
    int rc = split(device, name, sizeof name, ret_index, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < DET_ARRAY_LEN(built_in); i++)
        if (strcmp(built_in[i]->name, name) == 0) {
            *ret = built_in[i];
            return 0;
        }
    return load_module(name, ret, err);
}
