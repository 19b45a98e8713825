/* What a run asked of the device, written where EMULATED_COUNTS names a file. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda_runtime_api.h"

static const char *const names[EMULATED_CALLS] = {
    [EMULATED_KERNEL] = "kernels",    [EMULATED_GEMM] = "gemms",
    [EMULATED_CONV] = "convolutions", [EMULATED_TF32] = "tf32",
    [EMULATED_QUERY] = "queries",     [EMULATED_UPLOAD] = "to_device",
    [EMULATED_DOWNLOAD] = "to_host",  [EMULATED_COPY] = "within_device",
    [EMULATED_WAIT] = "waits",        [EMULATED_ALLOC] = "allocations"};

long emulated_calls[EMULATED_CALLS];
static long long bytes[EMULATED_CALLS];

void emulated_count(enum emulated_call call, long long n)
{
    emulated_calls[call]++;
    bytes[call] += n;
}

long emulated_broken;
int emulated_breaks(void)
{
    static size_t calls;
    emulated_lock();
    size_t n = emulated_setting("EMULATED_BREAKS", 0);
    calls = n ? calls + 1 : 0;
    int breaks = n && calls == n;
    emulated_broken += breaks;
    emulated_unlock();
    return breaks;
}

long emulated_held[EMULATED_THINGS];
void emulated_hold(enum emulated_thing thing, long n)
{
    emulated_lock();
    emulated_held[thing] += n;
    emulated_unlock();
}

int emulated_is_empty(void)
{
    static int empty = -1; /* a kernel costs less than getenv() */
    if (empty < 0)
        empty = getenv("EMULATED_EMPTY") != NULL;
    return empty;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("EMULATED_COUNTS");
    FILE *f = path ? fopen(path, "w") : NULL;
    for (int i = 0; f && i < EMULATED_CALLS; i++)
        fprintf(f, "%s %ld %lld\n", names[i], emulated_calls[i], bytes[i]);
    if (f)
        fclose(f);
}
