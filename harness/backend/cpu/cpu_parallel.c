/* One parallel loop for all kernels. The parts depend on n, grain and the thread count only.
 *
 * libgomp is not built for ThreadSanitizer, which would see no order between the threads of a
 * region and what is before and behind it: there one thread does all parts. */
#include "cpu.h"

#include <omp.h>

void cpu_parallel(int threads, int64_t n, int64_t grain, cpu_range_fn *fn, const void *arg)
{
    int64_t parts = grain > 0 ? n / grain : n;
    if (parts > threads)
        parts = threads;
    if (parts <= 1) {
        if (n > 0)
            fn(arg, 0, n);
        return;
    }
    sigset_t before;
    cpu_hold_signals(&before);
#ifndef __SANITIZE_THREAD__
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)
#endif
    for (int64_t i = 0; i < parts; i++)
        fn(arg, n * i / parts, n * (i + 1) / parts);
    cpu_release_signals(&before);
}
