/* A typed growable array: VEC(struct trial *) trials = {0}; vec_push(&trials, t);
 * vec_free(&trials). Elements are moved by memcpy; pointers into it die at the next push. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include "mem.h"
#include <string.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *v;                                                                                   \
        size_t n, cap;                                                                             \
    }
#define vec_reserve(vec, want)                                                                     \
    do {                                                                                           \
        if ((want) > (vec)->cap) {                                                                 \
            size_t cap_ = (vec)->cap ? (vec)->cap * 2 : 8;                                         \
            while (cap_ < (want))                                                                  \
                cap_ *= 2;                                                                         \
            (vec)->v = det_reallocarray((vec)->v, cap_, sizeof *(vec)->v);                         \
            (vec)->cap = cap_;                                                                     \
        }                                                                                          \
    } while (0)
#define vec_push(vec, ...)                                                                         \
    do {                                                                                           \
        vec_reserve(vec, (vec)->n + 1);                                                            \
        (vec)->v[(vec)->n++] = (__VA_ARGS__);                                                      \
    } while (0)
/* Makes the new element number i. */
#define vec_insert(vec, i, ...)                                                                    \
    do {                                                                                           \
        size_t at_ = (i);                                                                          \
        vec_reserve(vec, (vec)->n + 1);                                                            \
        memmove((vec)->v + at_ + 1, (vec)->v + at_, ((vec)->n - at_) * sizeof *(vec)->v);          \
        (vec)->v[at_] = (__VA_ARGS__);                                                             \
        (vec)->n++;                                                                                \
    } while (0)
/* Removes element i, keeping the order of the others. */
#define vec_remove(vec, i)                                                                         \
    do {                                                                                           \
        size_t i_ = (i);                                                                           \
        memmove((vec)->v + i_, (vec)->v + i_ + 1, ((vec)->n - i_ - 1) * sizeof *(vec)->v);         \
        (vec)->n--;                                                                                \
    } while (0)
/* The first place whose element is not `before`, an expression of e, which points to it; the number
 * of elements: all are. The vector is in order: none before comes after one that is not. */
#define vec_bound(vec, e, before)                                                                  \
    __extension__({                                                                                \
        size_t lo_ = 0, hi_ = (vec)->n;                                                            \
        while (lo_ < hi_) {                                                                        \
            size_t mid_ = lo_ + (hi_ - lo_) / 2;                                                   \
            const __typeof__(*(vec)->v) *e = &(vec)->v[mid_];                                      \
            if (before)                                                                            \
                lo_ = mid_ + 1;                                                                    \
            else                                                                                   \
                hi_ = mid_;                                                                        \
        }                                                                                          \
        lo_;                                                                                       \
    })
#define vec_free(vec)                                                                              \
    do {                                                                                           \
        free((vec)->v);                                                                            \
        (vec)->v = NULL;                                                                           \
        (vec)->n = (vec)->cap = 0;                                                                 \
    } while (0)

#endif
