/* Hostile state files: as a zip of torch.save, and the same bytes as a bare pickle, without storage
 * and with it: a mutant of a zip fails at its checksums before its tensors. Whatever is accepted
 * is walked and its tensors are read. */
#include "pth_impl.h"
#include "mem.h"
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of few elements: one that is expanded says no more by being long. */
#define NUMEL_MAX     (1 << 16)
#define STORAGE_BYTES 4096

static void read_tensor(const struct pth_value *v)
{
    size_t bytes = (size_t)pth_tensor_numel(v) * det_dtype_size(DET_I64);
    void *out = pth_tensor_numel(v) <= NUMEL_MAX ? det_try_alloc(bytes + 1) : NULL;
    if (!out)
        return;
    det_ignore(pth_tensor_read(v, DET_I64, out, bytes, NULL), "whatever it says, nothing breaks");
    det_ignore(pth_tensor_read(v, DET_F32, out, bytes / 2, NULL),
               "whatever it says, nothing breaks");
    free(out);
}

/* Shared values are walked again at each place: bounded by fuel. */
static void walk(const struct pth_value *v, int *fuel)
{
    const struct pth_value *key;
    if (--*fuel < 0)
        return;
    if (pth_kind(v) == PTH_TENSOR)
        read_tensor(v);
    for (size_t i = 0; i < pth_len(v) && *fuel > 0; i++)
        walk(pth_kind(v) == PTH_DICT ? pth_item(v, i, &key) : pth_at(v, i), fuel);
}

/* Every key has a storage; of its own memory, so that a read past its end is seen. */
static int find_storage(void *arg, const char *key, const char **ret, size_t *ret_bytes,
                        struct det_err *err)
{
    *ret = arg;
    *ret_bytes = STORAGE_BYTES;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fuel = 1000;
    const struct pth_value *root = NULL;
    det_cleanup(freep) char *memory = det_zalloc(STORAGE_BYTES);
    const struct pth_storages storages = {.find = find_storage, .arg = memory};
    struct pth_doc *doc = pth_doc_create();
    if (pth_parse(data, size, doc, &root, NULL) == 0)
        walk(root, &fuel);
    if (pth_unpickle(data, size, NULL, doc, &root, NULL) == 0)
        walk(root, &fuel);
    if (pth_unpickle(data, size, &storages, doc, &root, NULL) == 0)
        walk(root, &fuel);
    pth_doc_destroy(doc);
    return 0;
}
