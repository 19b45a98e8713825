/* Hostile data files, as CSV, IDX, CIFAR and tokens: read through a file in memory. */
#include "dataset.h"
#include "mem.h"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct det_csv_field fields[] = {{"x", .columns = 2, .dtype = DET_F32},
                                              {"y", .first = 2, .columns = 1, .dtype = DET_I64},
                                              {"z", .first = 0, .columns = 1, .dtype = DET_U8},
                                              {0}};

/* Every sequence there is. */
static void read_tokens(const char *path, size_t size)
{
    const struct det_token_options o = {.path = path,
                                        .type = size % 3,
                                        .sequence = 3,
                                        .stride = 1 + (int64_t)size % 5,
                                        .vocabulary = 1000};
    struct det_dataset *ds = det_dataset_tokens(&o, NULL);
    int64_t input[3], target[3];
    void *out[] = {input, target};
    for (int64_t i = 0; i < det_dataset_length(ds); i++)
        det_ignore(dataset_read(ds, i, (struct data_key){0}, out, NULL),
                   "whatever it says, nothing breaks");
    det_dataset_unref(ds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        det_closep(&fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const struct det_csv_options csv = {.fields = fields, .header = size % 2 == 0};
    const struct det_idx_options idx = {.images = path, .labels = size % 2 ? path : NULL};
    det_dataset_unref(det_dataset_csv(path, &csv, NULL));
    det_dataset_unref(det_dataset_idx(&idx, NULL));
    const char *const files[] = {path, NULL};
    det_dataset_unref(
        det_dataset_cifar(&(struct det_cifar_options){.files = files, .cifar100 = size % 2}, NULL));
    read_tokens(path, size);
    close(fd);
    return 0;
}
