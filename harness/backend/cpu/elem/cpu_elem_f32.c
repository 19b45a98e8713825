/* The element-wise functions in f32: vector code for the units there are. */
#define ELEM_T      float
#define ELEM_TABLE  cpu_elem_f32
#define ELEM_CLONES CPU_CLONES
#define ELEM_VECTOR
#include "cpu_elem_rows.h"
