/* What the cutter takes, the parser takes: the rest and the member, but for keys that come twice in
 * it. */
#include "json.h"
#include "json_cut.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_step path[] = {{"metrics", "metrics"},
                                            {"batchMetrics", "batch_metrics"}};
    struct json_span s;
    const char *text = (const char *)data;
    if (!json_cut(text, size, path, DET_ARRAY_LEN(path), &s))
        return 0;
    json_error_t e;
    json_t *whole = json_loadb(text, size, JSON_DECODE_ANY, &e);
    if (!whole)
        abort();
    json_decref(whole);
    if (!s.p)
        return 0;
    struct buf rest = BUF_INIT;
    json_cut_rest(text, size, &s, &rest);
    json_t *j = json_loadb(rest.p, rest.len, 0, &e);
    json_t *member = json_loadb(s.p, s.len, 0, &e);
    if (!j || !json_is_array(member))
        abort();
    json_decref(j);
    json_decref(member);
    buf_finish(&rest);
    return 0;
}
