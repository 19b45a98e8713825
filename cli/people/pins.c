#include "pins.h"

#include "authfile.h"
#include "fsx.h"
#include "json.h"

#include <fcntl.h>
#include <string.h>

enum { FILE_BYTES_MAX = 16 << 20 };

char *pins_path(void)
{
    char *dir det_cleanup(freep) = authfile_directory();
    return dir ? det_asprintf("%s/certs.json", dir) : NULL;
}

static int load_pins(const char *path, json_t **ret, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    struct det_err why = {0};
    *ret = NULL;
    int rc = fsx_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &text, &why);
    if (rc == DET_ENOENT)
        *ret = json_object();
    else if (rc == 0)
        *ret = json_parse(buf_str(&text), text.len, &why);
    if (json_is_object(*ret))
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return det_fail(err, DET_ECORRUPT,
                    "%s, which keeps whom to take for a master, cannot be read: %s. Remove it, and "
                    "det asks for each master's authority again",
                    path, why.text[0] ? why.text : "not an object");
}

int pins_get(const char *master, char **ret, struct det_err *err)
{
    char *path det_cleanup(freep) = pins_path();
    JSON_OWN all = NULL;
    *ret = NULL;
    int rc = path ? load_pins(path, &all, err) : 0;
    if (rc == 0)
        *ret = det_strdup(json_str(all, master, NULL));
    return rc;
}

int pins_put(const char *master, const char *pem, struct det_err *err)
{
    char *dir det_cleanup(freep) = authfile_directory(), *path det_cleanup(freep) = pins_path();
    JSON_OWN all = NULL;
    if (!dir)
        return 0; /* nowhere to keep it: it is asked for each time */
    int rc = load_pins(path, &all, err);
    if (rc < 0)
        return rc;
    json_set(all, master, json_string(pem));
    char *text det_cleanup(freep) = json_text(all);
    rc = fsx_mkdirs(AT_FDCWD, dir, 0700, err);
    if (rc == 0)
        rc = fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, err);
    return rc < 0 ? det_wrap(err, rc, "keep the master's authority") : 0;
}
