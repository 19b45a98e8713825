/* A pattern (the first line) and a text (the rest): refused with a reason, or run within its steps
 * and what one byte may cost beyond them. */
#include "mem.h"
#include "pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t n = end ? (size_t)(end - data) : size, rest = end ? size - n - 1 : 0;
    det_cleanup(freep) char *text = det_zalloc(n + 1);
    struct pattern *p = NULL;
    struct det_err err = {0};
    int64_t steps = 100000;
    memcpy(text, data, n);
    if (pattern_compile(text, &p, &err) < 0) {
        if (!*err.text)
            abort();
        return 0;
    }
    pattern_find(p, (const char *)data + size - rest, rest, &steps);
    if (steps < -3 * PATTERN_SIZE_MAX)
        abort();
    pattern_destroy(p);
    return 0;
}
