#include "loop_alive.h"

#include "clk.h"
#include "storage.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The file belongs to the process, not to a run, and is never unmapped: det-task may look any
 * time. */
static struct progress *file;
static bool tried;
static _Atomic int64_t last_ms, longest_ms; /* also where there is no file */

static void map_file(void)
{
    const char *path = getenv(PROGRESS_ENV);
    tried = true;
    if (!path || !*path)
        return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return; /* no watchdog then; det-task treats zeros as "has not begun" */
    struct stat st;
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size >= PROGRESS_BYTES)
        p = mmap(NULL, PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        file = p;
}

static int64_t note_sign(bool counts)
{
    int64_t now_ms = clk_mono_ms(), gap_ms = now_ms - last_ms;
    if (counts && gap_ms > longest_ms)
        longest_ms = gap_ms;
    last_ms = now_ms;
    return now_ms;
}

int64_t loop_alive_silent_ms(void)
{
    return clk_mono_ms() - last_ms;
}

int64_t loop_alive_longest_ms(void)
{
    return longest_ms;
}

void loop_alive(enum progress_phase phase, uint64_t batches)
{
    int64_t now_ms = note_sign(phase != PROGRESS_STARTING);
    if (!tried)
        map_file();
    if (!file)
        return;
    if (phase == PROGRESS_TRAINING && batches > 0 && !file->first_batch_mono_ms)
        atomic_store_explicit(&file->first_batch_mono_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&file->phase, phase, memory_order_relaxed);
    atomic_store_explicit(&file->batches, batches, memory_order_relaxed);
    atomic_store_explicit(&file->mono_ms, now_ms, memory_order_relaxed);
    if (atomic_load_explicit(&file->magic, memory_order_relaxed) != PROGRESS_MAGIC)
        atomic_store_explicit(&file->magic, PROGRESS_MAGIC, memory_order_release);
}

void loop_alive_loaded(int64_t took_ms)
{
    if (!file)
        return;
    atomic_store_explicit(&file->loading_ms, (uint32_t)took_ms, memory_order_relaxed);
    atomic_store_explicit(&file->loaded_mono_ms, clk_mono_ms(), memory_order_release);
}

void loop_alive_again(void)
{
    int64_t now_ms = note_sign(false);
    if (file)
        atomic_store_explicit(&file->mono_ms, now_ms, memory_order_relaxed);
}

/* ---- Waiting for rank 0, or for a disk ------------------------------------------------------- */

/* Less than this is no sign: log lines and the look itself are bytes too. */
enum { MOVED_MIN = 64 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum { WAITS_FOR_NOTHING, WAITS_FOR_RANK_0, WAITS_FOR_DISK } waits;
static bool have_thread;
static uint64_t moved_before;

/* proc(5): rchar and wchar are the bytes of this process's reads and writes that ended; read_bytes
 * rises during a long one. */
static uint64_t moved_so_far(void)
{
    unsigned long long sum = storage_synced_bytes(), n;
    char line[64];
    FILE *f = fopen("/proc/self/io", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "rchar: %llu", &n) == 1 || sscanf(line, "wchar: %llu", &n) == 1 ||
            sscanf(line, "read_bytes: %llu", &n) == 1)
            sum += n;
    if (f)
        fclose(f);
    return sum;
}

static bool is_alive(void)
{
    if (waits == WAITS_FOR_RANK_0)
        return true;
    uint64_t now = moved_so_far();
    if (now - moved_before < MOVED_MIN)
        return false;
    moved_before = now;
    return true;
}

/* Lives as long as the process, as the file does. */
static void *run_pulse(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct timespec t;
        while (waits == WAITS_FOR_NOTHING)
            pthread_cond_wait(&changed, &lock);
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec++;
        int rc = pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &t);
        if (rc == ETIMEDOUT && waits != WAITS_FOR_NOTHING && is_alive())
            loop_alive_again();
    }
    return arg;
}

static void wait_for(int what)
{
    if (!file || (what == WAITS_FOR_NOTHING && !have_thread))
        return;
    pthread_mutex_lock(&lock);
    if (!have_thread)
        have_thread = thread_start_detached(run_pulse, NULL) == 0;
    if (what == WAITS_FOR_DISK)
        moved_before = moved_so_far();
    waits = what;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

void loop_alive_wait(bool waiting)
{
    wait_for(waiting ? WAITS_FOR_RANK_0 : WAITS_FOR_NOTHING);
}

void loop_alive_disk(bool waiting)
{
    wait_for(waiting ? WAITS_FOR_DISK : WAITS_FOR_NOTHING);
}
