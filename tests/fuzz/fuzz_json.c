/* What our reader takes, jansson takes too, and means the same by it. */
#include "json_read.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_OWN ours = json_read((const char *)data, size);
    json_error_t e;
    if (!ours)
        return 0;
    JSON_OWN theirs = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (!theirs)
        abort();
    det_cleanup(freep) char *a = json_text(ours), *b = json_text(theirs);
    if (!json_equal(ours, theirs) || strcmp(a, b) != 0)
        abort();
    return 0;
}
