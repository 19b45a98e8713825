#include "oom.h"

#include "fsx.h"
#include "mem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX 65536
#define REMEDY "; smaller batches, fewer data workers or fewer slots of a host need less"

int64_t oom_kills(const char *path)
{
    static const char key[] = "\noom_kill ";
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    buf_add_ch(&b, '\n');
    if (fsx_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &b, NULL) < 0)
        return -1;
    const char *line = strstr(buf_str(&b), key);
    return line ? strtoll(line + sizeof key - 1, NULL, 10) : -1;
}

void oom_explain(int64_t in_cgroup, int64_t before, int64_t now, struct buf *out)
{
    if (in_cgroup > 0)
        buf_add_str(out, ": the kernel did that for want of memory" REMEDY);
    else if (before >= 0 && now > before)
        buf_addf(out, ": most likely by the kernel for want of memory: so ended %lld of this host's "
                 "processes since the ranks began" REMEDY, (long long)(now - before));
    else
        buf_add_str(out, ": by somebody on this host, or by the kernel for want of memory, of which "
                         "its log (dmesg) tells");
}
