/* What every file of a store needs: its handle, names and errors. */
#include "storage_impl.h"

#include "fsx.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

int storage_errno(const char *what, const char *root, const char *name, struct det_err *err)
{
    return det_fail_errno(err, det_code_of_errno(errno), errno, "%s %s/%s", what, root, name);
}

int storage_check_uuid(const char *uuid, struct det_err *err)
{
    static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t n = uuid ? strnlen(uuid, STORAGE_UUID_MAX + 1) : 0;
    if (n == 0 || n > STORAGE_UUID_MAX || strspn(uuid, ok) != n)
        return det_fail(err, DET_EINVAL,
                        "checkpoint uuid \"%.80s\": letters, digits, '-' and '_' only%s",
                        uuid ? uuid : "",
                        uuid && strchr(uuid, '/') ? ": the name of its folder, not a path" : "");
    return 0;
}

char *storage_hidden_name(const char *uuid, const char *suffix)
{
    return det_asprintf(".%s%s", uuid, suffix);
}

void storage_close(struct storage *s)
{
    if (!s)
        return;
    det_closep(&s->fd);
    free(s->root);
    free(s);
}
