/* What fake_nvml.c counts, for tests that link it. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stdatomic.h>

extern struct fake_nvml_counts {
    atomic_int begins, looks; /* since the process began */
    atomic_int open;          /* begins that were not ended */
    atomic_int hanging;       /* looks that have not come back */
} fake_nvml_counts;

#endif
