#include "data_file.h"

#include "mem.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK (1 << 17)

static void gzclosep(gzFile *f)
{
    if (*f)
        gzclose(*f);
}

static int gz_failure(gzFile f, const char *path, struct det_err *err)
{
    int code = 0;
    const char *words = gzerror(f, &code);
    if (code == Z_ERRNO)
        return det_fail_errno(err, DET_EIO, errno, "read %s", path);
    return det_fail(err, DET_ECORRUPT, "read %s: the gzip data is damaged or cut short: %s", path,
                    words);
}

static int read_all(gzFile f, const char *path, struct buf *out, struct det_err *err)
{
    for (;;) {
        buf_reserve(out, BLOCK);
        int n = gzread(f, out->p + out->len, BLOCK);
        if (n < 0)
            return gz_failure(f, path, err);
        if (n == 0)
            break;
        out->len += (size_t)n;
        out->p[out->len] = '\0';
        if (out->len > DATA_FILE_MAX)
            return det_fail(err, DET_ETOOBIG, "read %s: more than %zu bytes unpacked", path,
                            DATA_FILE_MAX);
    }
    /* A stream that ends before its trailer is reported only here. */
    int code = 0;
    gzerror(f, &code);
    return code == Z_OK || code == Z_STREAM_END ? 0 : gz_failure(f, path, err);
}

int data_file_read(const char *path, struct buf *out, struct det_err *err)
{
    struct stat st;
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return det_fail_errno(err, det_code_of_errno(errno), errno, "open data file %s", path);
    if (!S_ISREG(st.st_mode)) /* a pipe is read once: not by another rank, nor on a resume */
        return det_fail(err, DET_EINVAL, "data file %s: not a regular file", path);
    det_cleanup(gzclosep) gzFile f = gzdopen(fd, "rb");
    if (!f)
        return det_fail(err, DET_ENOMEM, "open data file %s", path);
    fd = -1; /* f's */
    gzbuffer(f, BLOCK);
    return read_all(f, path, out, err);
}
