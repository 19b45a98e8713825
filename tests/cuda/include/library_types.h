/* The element types of cuBLAS, for tests only. */
#ifndef EMULATED_LIBRARY_TYPES_H
#define EMULATED_LIBRARY_TYPES_H

#include "cuda_runtime_api.h"

typedef enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType;

#endif
