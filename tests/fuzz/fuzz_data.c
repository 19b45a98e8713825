/* Hostile data files, as CSV and as IDX: read through a file in memory. */
#include "det/data_files.h"
#include "mem.h"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct det_csv_field fields[] = {
    {"x", .columns = 2, .dtype = DET_F32}, {"y", .first = 2, .columns = 1, .dtype = DET_I64},
    {"z", .first = 0, .columns = 1, .dtype = DET_U8}, {0}};

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
    close(fd);
    return 0;
}
