/* The element-wise functions in f64, which training seldom uses: no code for special units. */
#define ELEM_T     double
#define ELEM_TABLE cpu_elem_f64
#define ELEM_CLONES
#include "cpu_elem_rows.h"
