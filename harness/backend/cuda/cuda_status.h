/* What a status of cuDNN means, by numbers alone: its versions number theirs differently. */
#ifndef CUDA_STATUS_H
#define CUDA_STATUS_H

#include <stdbool.h>

/* "Not supported", whatever the reason. not_supported: CUDNN_STATUS_NOT_SUPPORTED of the version
 * that is compiled against: 9 up to cuDNN 8, where that is all; 3000 since cuDNN 9, which adds its
 * reasons to its thousands. */
static inline bool cuda_status_refused(int status, int not_supported)
{
    return status == not_supported ||
           (not_supported >= 1000 && status / 1000 * 1000 == not_supported);
}

/* "No memory", as cuDNN 8 has it and 9 (4003 of the host, 4004 of the device). */
static inline bool cuda_status_no_memory(int status, int alloc_failed)
{
    return status == alloc_failed || (alloc_failed >= 1000 && status == alloc_failed + 1);
}

#endif
