/* Matrix products and indexing. */
#include "det/functional.h"

#include "op_case.h"

BUILD(matmul, det_matmul(e, in[0], in[1]))
BUILD(matmul_self, det_matmul(e, in[0], in[0]))
BUILD(index_rows, det_index_select(e, in[0], 0, in[1]))
BUILD(index_middle, det_index_select(e, in[0], 1, in[1]))
BUILD(index_last, det_index_select(e, in[0], -1, in[1]))
BUILD(embedding, det_embedding(e, in[0], in[1]))
BUILD(embedding_padding, det_embedding(e, in[0], in[1], .padding = true, .padding_idx = 2))
/* A table that is the output layer too. */
BUILD(embedding_last, det_embedding(e, in[0], in[1], .padding = true, .padding_idx = -2))
BUILD(embedding_tied, det_linear(e, det_embedding(e, in[0], in[1]), in[0], NULL))
BUILD(gather_0, det_gather(e, in[0], 0, in[1]))
BUILD(gather_1, det_gather(e, in[0], 1, in[1]))
BUILD(scatter_add_0, det_scatter_add(e, in[0], 0, in[1], in[2]))
BUILD(scatter_add_1, det_scatter_add(e, in[0], 1, in[1], in[2]))

/* clang-format off */
const struct op_case cases_math[] = {
    {"matmul", "5x7 by 7x3", {IN(5, 7), IN(7, 3)}, matmul, "x0 @ x1"},
    {"matmul", "by itself", {IN(5, 5)}, matmul_self, "x0 @ x0"},
    {"matmul", "vectors", {IN(9), IN(9)}, matmul, "x0 @ x1"},
    {"matmul", "vector left", {IN(9), IN(3, 9, 4)}, matmul, "x0 @ x1"},
    {"matmul", "vector right", {IN(2, 3, 9), IN(9)}, matmul, "x0 @ x1"},
    {"matmul", "rows by one", {IN(2, 3, 5), IN(5, 4)}, matmul, "x0 @ x1"},
    {"matmul", "batch", {IN(4, 3, 5), IN(4, 5, 2)}, matmul, "x0 @ x1"},
    {"matmul", "batch broadcast", {IN(4, 1, 3, 5), IN(1, 2, 5, 2)}, matmul, "x0 @ x1"},
    {"matmul", "one by a batch", {IN(3, 5), IN(4, 2, 5, 2)}, matmul, "x0 @ x1"},
    {"matmul", "empty", {IN(0, 5), IN(5, 3)}, matmul, "x0 @ x1"},
    {"matmul", "empty sum", {IN(2, 0), IN(0, 3)}, matmul, "x0 @ x1"},
    {"matmul", "large", {IN(6, 65, 70), IN(6, 70, 33)}, matmul, "x0 @ x1"},
    {"index_select", "rows", {IN(5, 7), CLASSES(4, 9)}, index_rows, "x0.index_select(0, x1)"},
    {"index_select", "middle", {IN(3, 5, 4), CLASSES(4, 6)}, index_middle,
     "x0.index_select(1, x1)"},
    {"index_select", "last", {IN(3, 5), CLASSES(4, 6)}, index_last, "x0.index_select(1, x1)"},
    {"index_select", "integers", {CLASSES(90, 5, 7), CLASSES(4, 9)}, index_rows,
     "x0.index_select(0, x1)"},
    {"index_select", "embedding", {IN(7, 6), CLASSES(6, 3, 4)}, embedding, "F.embedding(x1, x0)"},
    {"index_select", "large padding", {IN(4, 6), CLASSES(3, 3, 4)}, embedding_padding,
     "F.embedding(x1, x0, padding_idx=2)"},
    {"index_select", "large padding, from the end", {IN(4, 6), CLASSES(3, 3, 4)}, embedding_last,
     "F.embedding(x1, x0, padding_idx=-2)"},
    {"index_select", "tied", {IN(7, 6), CLASSES(6, 5)}, embedding_tied,
     "F.linear(F.embedding(x1, x0), x0)"},
    {"index_select", "one row for most", {IN(3, 9), CLASSES(1, 45)}, embedding, "F.embedding(x1, x0)"},
    {"index_select", "large", {IN(1000, 33), CLASSES(999, 7, 50)}, embedding,
     "F.embedding(x1, x0)"},
    {"gather", "dim 0", {IN(5, 4), CLASSES(4, 3, 4)}, gather_0, "x0.gather(0, x1)"},
    {"gather", "dim 1", {IN(3, 5, 2), CLASSES(4, 3, 7, 2)}, gather_1, "x0.gather(1, x1)"},
    {"scatter_add", "dim 0", {IN(5, 4), CLASSES(4, 3, 4), IN(3, 4)}, scatter_add_0,
     "x0.scatter_add(0, x1, x2)"},
    {"scatter_add", "dim 1", {IN(3, 5), CLASSES(4, 3, 8), IN(3, 8)}, scatter_add_1,
     "x0.scatter_add(1, x1, x2)"},
    {0},
};
