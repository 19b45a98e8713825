#include "views.h"

#include <string.h>

int view_check_name(const char *name, struct det_err *err)
{
    size_t n = strlen(name);
    if (n == 0 || n > VIEW_NAME_MAX || name[strspn(name, " \t\r\n")] == '\0')
        return det_fail(err, DET_EINVAL, "name: 1 to %d bytes, not blank", VIEW_NAME_MAX);
    if (name[0] == ' ' || name[n - 1] == ' ')
        return det_fail(err, DET_EINVAL, "name: no space at its beginning or end");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return det_fail(err, DET_EINVAL, "name: without control characters");
    return 0;
}

int view_check_address(const char *address, struct det_err *err)
{
    size_t n = strlen(address);
    if (strncmp(address, "/det/", 5) != 0 || address[5] == '/')
        return det_fail(err, DET_EINVAL,
                        "address: expected one of the page's, as /det/experiments?search=x");
    if (strncmp(address, "/det/views/", 11) == 0)
        return det_fail(err, DET_EINVAL, "address: a page's, not that of another view");
    if (n > VIEW_ADDRESS_MAX)
        return det_fail(err, DET_EINVAL, "address: %zu bytes; at most %d", n, VIEW_ADDRESS_MAX);
    for (const char *c = address; *c; c++)
        if (*c <= ' ' || *c > '~')
            return det_fail(err, DET_EINVAL,
                            "address: spaces, control characters and letters beyond ASCII as %%XX");
    return 0;
}
