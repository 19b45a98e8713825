/* Spool files as another process left them: opened, read to the end, appended to, opened again.
 * Whatever was appended must be there, last. */
#include "spool.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/det-fuzz-spool-XXXXXX";

static void remove_file(void)
{
    unlink(path);
}

static int put(const uint8_t *data, size_t size)
{
    static int made;
    if (!made) {
        int fd = mkstemp(path);
        if (fd < 0)
            abort();
        close(fd);
        atexit(remove_file);
        made = 1;
    }
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    int ok = fd >= 0 && write(fd, data, size) == (ssize_t)size;
    close(fd);
    return ok;
}

static size_t drain(struct spool *s, char *last, size_t cap)
{
    struct spool_record r;
    size_t n = 0;
    while (spool_next(s, &r, NULL) == 0) {
        strncpy(last, r.seq, cap - 1);
        last[cap - 1] = 0;
        assert(spool_sent(s, NULL) == 0);
        n += strlen(r.method) + strlen(r.path) + strlen(r.body) + 1;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spool *s = NULL;
    struct spool_record mine = {"9.9", "POST", "/x", "{}"};
    char last[64] = "";
    if (!put(data, size) || spool_open(path, &s, NULL) < 0)
        return 0;
    struct spool_record r;
    int whole = 1;
    if (spool_next(s, &r, NULL) == DET_ECORRUPT)
        whole = 0; /* a record with a good checksum and without its four parts: not ours */
    if (whole && spool_append(s, &mine, NULL) == 0) {
        spool_close(s);
        assert(spool_open(path, &s, NULL) == 0);
        drain(s, last, sizeof last);
        assert(spool_pending(s) > 0 || strcmp(last, "9.9") == 0);
    }
    spool_close(s);
    return 0;
}
