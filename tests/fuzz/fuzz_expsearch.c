/*
 * A line of a sort, then a filter: refused with a reason, or what is read holds together: every
 * leaf is named once in the conditions, and there is a key to sort by.
 */
#include "expsearch.h"
#include "mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
    if (!ok)
        abort();
}

/* The leaves come in the order in which the tree names them. */
static void walk(const json_t *node, json_int_t *next)
{
    if (json_is_integer(node)) {
        require(json_integer_value(node) == (*next)++);
        return;
    }
    const json_t *all = json_array_size(json_object_get(node, "or")) ? json_object_get(node, "or")
                                                                     : json_object_get(node, "and");
    require(json_array_size(all) > 0);
    for (size_t i = 0; i < json_array_size(all); i++)
        walk(json_array_get(all, i), next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    det_cleanup(freep) char *sort = det_strndup((const char *)data, size);
    char *filter = strchr(sort, '\n');
    struct det_err err = {0};
    JSON_OWN got = NULL;
    json_int_t next = 0;
    if (filter)
        *filter++ = '\0';
    if (expsearch_read(filter, sort, &got, &err) < 0) {
        require(!got && *err.text);
        return 0;
    }
    if (!json_is_null(json_object_get(got, "where")))
        walk(json_object_get(got, "where"), &next);
    require((size_t)next == json_array_size(json_arr(got, "leaves")));
    require(json_array_size(json_arr(got, "order")) > 0);
    det_cleanup(freep) char *text = json_text(got);
    return 0;
}
