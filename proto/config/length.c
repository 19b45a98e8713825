#include "length.h"

#include <string.h>

static const char *const names[LENGTH_UNIT_COUNT] = {"batches", "records", "epochs", ""};

static int refuse_length(struct det_err *err)
{
    return det_fail(err, DET_EINVAL,
                    "expected a length: exactly one of batches, records and epochs with a whole "
                    "number that is not negative; write e.g. {batches: 100}");
}

const char *length_unit_name(enum length_unit unit)
{
    return names[unit];
}

int length_unit_parse(const char *name, enum length_unit *ret)
{
    for (int i = 0; i < LENGTH_NONE; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum length_unit)i;
            return 0;
        }
    return DET_EINVAL;
}

int length_from_json(const json_t *j, struct length *ret, struct det_err *err)
{
    struct length l = {.unit = LENGTH_NONE};
    const json_t *number = j;
    if (json_is_object(j)) {
        void *it = json_object_iter((json_t *)j);
        if (json_object_size(j) != 1 || length_unit_parse(json_object_iter_key(it), &l.unit) < 0)
            return refuse_length(err);
        number = json_object_iter_value(it);
    }
    if (!json_is_integer(number) || json_integer_value(number) < 0 ||
        json_integer_value(number) > LENGTH_MAX)
        return refuse_length(err);
    l.n = json_integer_value(number);
    *ret = l;
    return 0;
}
