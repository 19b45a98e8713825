/* Hostile event files: as they are, and with checksums made right so that the messages are read. */
#include "mem.h"
#include "tfevents.h"
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_tag(void *arg, const char *tag, size_t tag_bytes, int64_t step)
{
    uint64_t *sum = arg;
    for (size_t i = 0; i < tag_bytes; i++)
        *sum += (uint8_t)tag[i];
    *sum += (uint64_t)step;
}

static void put_le(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t sum = 0;
    det_ignore(tfevents_read(data, size, on_tag, &sum, NULL), "whatever it says, nothing breaks");
    uint8_t *record = det_alloc(size + 16);
    put_le(record, size, 8);
    put_le(record + 8, tfevents_masked_crc(record, 8), 4);
    if (size)
        memcpy(record + 12, data, size);
    put_le(record + 12 + size, tfevents_masked_crc(data, size), 4);
    det_ignore(tfevents_read(record, size + 16, on_tag, &sum, NULL),
               "whatever it says, nothing breaks");
    free(record);
    return 0;
}
