#include "pidowner.h"

#include "buf.h"
#include "fsx.h"
#include "mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENVIRON_BYTES_MAX ((size_t)8 << 20)
#define ANCESTORS_MAX     64
#define FIRST_NAMESPACE   0xEFFFFFFCU /* the inode of the kernel's first PID namespace */

static bool sees_all(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_NAMESPACE;
}

/* A task's processes have DET_WORKDIR, beneath the agent's directory; its det-task has the
 * directory itself as an argument. */
static bool names_work_dir(int pid, const char *file, const char *before, const char *work_dir)
{
    char path[64];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    size_t head = strlen(before), dir = strlen(work_dir);
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    if (fsx_read_file(AT_FDCWD, path, ENVIRON_BYTES_MAX, &b, NULL) < 0)
        return false;
    for (size_t i = 0; i < b.len; i += strlen(b.p + i) + 1)
        if (strncmp(b.p + i, before, head) == 0 && strncmp(b.p + i + head, work_dir, dir) == 0 &&
            b.p[i + head + dir] == '/')
            return true;
    return false;
}

static int parent_of(int pid)
{
    char path[64], text[1024], state;
    int ppid;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    det_cleanup(det_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %d", &state, &ppid) == 2 ? ppid : -1;
}

static void read_name(int pid, char *name, size_t size)
{
    char path[64];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (fsx_read_file(AT_FDCWD, path, 256, &b, NULL) == 0)
        snprintf(name, size, "%.*s", (int)strcspn(buf_str(&b), "\n"), buf_str(&b));
}

enum pidowner pidowner_of(int pid, const char *work_dir, char *name, size_t size)
{
    *name = '\0';
    int parent = parent_of(pid);
    if (parent < 0)
        return sees_all() ? PID_GONE : PID_HIDDEN;
    read_name(pid, name, size);
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid))
        if (names_work_dir(pid, "environ", "DET_WORKDIR=", work_dir) ||
            names_work_dir(pid, "cmdline", "", work_dir))
            return PID_OURS;
    return PID_FOREIGN;
}
