#include "findings.h"

#include "clk.h"
#include "mem.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

enum { ROOM_MIB = 256 };

int findings_print(struct findings *f, const char *good, const char *bad)
{
    printf("%s%s\n", buf_str(&f->text), f->failed ? bad : good);
    buf_finish(&f->text);
    return f->failed > 0;
}

/* A finding is one line, however many a library's message has. */
static void one_line(struct buf *b, size_t from)
{
    while (b->len > from && b->p[b->len - 1] == '\n')
        b->p[--b->len] = '\0';
    for (size_t i = from; i < b->len; i++)
        if ((unsigned char)b->p[i] < ' ')
            b->p[i] = ' ';
}

void findings_add(struct findings *f, enum finding how, const char *what, const char *advice,
                  const char *fmt, ...)
{
    static const char *const words[] = {"ok", "warn", "FAIL"};
    f->warned += how == FINDING_WARN;
    f->failed += how == FINDING_FAIL;
    buf_addf(&f->text, "%-5s %-22s ", words[how], what);
    size_t from = f->text.len;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&f->text, fmt, ap);
    va_end(ap);
    one_line(&f->text, from);
    buf_addf(&f->text, "\n%s%s%s", advice ? "      -> " : "", advice ? advice : "",
             advice ? "\n" : "");
}

void findings_dir(struct findings *f, const char *what, const char *path)
{
    struct stat st;
    struct statvfs fs;
    if (stat(path, &st) < 0) {
        findings_add(f, FINDING_FAIL, what, "make the directory, owned by whom this runs as",
                     "%s: %s", path, strerror(errno));
        return;
    }
    if (!S_ISDIR(st.st_mode) || access(path, W_OK | X_OK) < 0) {
        findings_add(f, FINDING_FAIL, what, "give it to whom this runs as (chown, chmod u+rwx)",
                     "%s: %s", path,
                     S_ISDIR(st.st_mode) ? "cannot be written to" : "is no directory");
        return;
    }
    unsigned long long mib =
        statvfs(path, &fs) == 0 ? (unsigned long long)fs.f_bavail * fs.f_frsize >> 20 : ROOM_MIB;
    findings_add(f, mib < ROOM_MIB ? FINDING_FAIL : FINDING_OK, what,
                 mib < ROOM_MIB ? "free space on it" : NULL, "%s: %llu MiB free", path, mib);
}

void findings_dir_of(struct findings *f, const char *what, const char *file)
{
    const char *slash = strrchr(file, '/');
    det_cleanup(freep) char *dir =
        slash ? det_strndup(file, slash == file ? 1 : (size_t)(slash - file)) : det_strdup(".");
    findings_dir(f, what, dir);
}

void findings_clock(struct findings *f)
{
    struct timex t = {0};
    int64_t before = clk_mono_us();
    int state = adjtimex(&t); /* reads only */
    bool ticks = clk_mono_us() >= before && clk_mono_ms() > 0;
    if (!ticks)
        findings_add(f, FINDING_FAIL, "clock", "look at the host: its monotonic clock stands still",
                     "the monotonic clock does not advance");
    else if (state < 0)
        findings_add(f, FINDING_OK, "clock", NULL, "ticks; its synchronisation cannot be read");
    else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
        findings_add(f, FINDING_WARN, "clock",
                     "start chrony or systemd-timesyncd: times in logs and metrics drift apart",
                     "not synchronised with a time server");
    else
        findings_add(f, FINDING_OK, "clock", NULL, "synchronised");
}

void findings_files(struct findings *f, long wanted)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_max < (rlim_t)wanted)
        findings_add(
            f, FINDING_FAIL, "open files", "raise it: LimitNOFILE= in the unit, or ulimit -Hn",
            "at most %llu; at least %ld are wanted", (unsigned long long)l.rlim_max, wanted);
    else
        findings_add(f, FINDING_OK, "open files", NULL, "at most %llu",
                     (unsigned long long)l.rlim_max);
}
