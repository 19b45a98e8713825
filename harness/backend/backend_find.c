/* Finds a backend by its device's name: the built-in ones, then modules on disk. */
#include "backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"
#include "find.h"
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
static int split_device(const char *device, char *name, size_t n, int *ret_index,
                        struct det_err *err)
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

/* Caller frees; NULL: none. */
static char *module_path(const char *name)
{
    const char *given = getenv("DET_BACKEND_DIR");
    det_cleanup(freep) char *own = given ? det_asprintf("%s/det_backend_%s.so", given, name) : NULL;
    if (own && access(own, R_OK) == 0)
        return det_take(own);
    det_cleanup(freep) char *near = det_asprintf("det_backend_%s.so", name);
    det_cleanup(freep) char *installed = det_asprintf("../lib/det/det_backend_%s.so", name);
    char *path = find_beside(near, R_OK);
    return path ? path : find_beside(installed, R_OK);
}

static int load_module(const char *name, const struct det_backend **ret, struct det_err *err)
{
    det_cleanup(freep) char *path = module_path(name);
    if (!path)
        return det_fail(
            err, DET_ENOENT,
            "there is no backend \"%s\" (det_backend_%s.so is not in DET_BACKEND_DIR, beside "
            "the program or in ../lib/det): use the device \"cpu\" or build that module",
            name, name);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module)
        return det_fail(err, DET_EUNAVAIL, "load %s: %s", path, dlerror());
    return table_of(module, path, ret, err);
}

int det_backend_find(const char *device, const struct det_backend **ret, int *ret_index,
                     struct det_err *err)
{
    static const struct det_backend *const built_in[] = {&det_backend_cpu, &det_backend_ref};
    char name[32];
    int rc = split_device(device, name, sizeof name, ret_index, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < DET_ARRAY_LEN(built_in); i++)
        if (strcmp(built_in[i]->name, name) == 0) {
            *ret = built_in[i];
            return 0;
        }
    return load_module(name, ret, err);
}
