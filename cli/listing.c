#include "listing.h"

int listing_print(const struct cli *c, const json_t *answer, const struct listing *l)
{
    if (cli_print_json(c, json_object_get(answer, l->member)))
        return 0;
    struct table *t = table_create(l->heads, l->columns);
    size_t i;
    json_t *one;
    json_array_foreach(json_arr(answer, l->member), i, one) l->row(t, one);
    table_print(t, l->none);
    return 0;
}
